"""The pages behind links, as responses: what is shown, the form of a request, and why a link opens nothing."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import jinja2
from starlette.responses import HTMLResponse

from planwave.api.link_pages.answer_form import AnswerForm, decisions_of, words
from planwave.api.link_pages.texts import PageTexts
from planwave.api.middleware.security_headers import NO_FRAMES, POLICY_HEADER
from planwave.events.budget import amount_text
from planwave.events.request_text import field_of, is_change_request, request_text

if TYPE_CHECKING:
    from planwave.errors import PlanwaveError
    from planwave.service.links import LinkedRequest, SharedRun
    from planwave.storage.links import LinkRecord

_FOLDER: Final = Path(__file__).parent
_STYLE: Final = (_FOLDER / "style.css").read_text("utf-8")
_STYLE_HASH: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
HEADERS: Final[Mapping[str, str]] = {
    POLICY_HEADER: f"default-src 'none'; img-src data:; style-src 'sha256-{_STYLE_HASH}'; "
    f"base-uri 'none'; form-action 'self'; {NO_FRAMES}",
    "Referrer-Policy": "strict-origin",
    "Cache-Control": "no-store",
    "X-Robots-Tag": "noindex, nofollow, noarchive",
}
"""The key is in the address: no other site gets it, and nothing keeps the page. With ``no-referrer`` the form would
have no ``Origin``."""
_LONGEST_STEP: Final = 32_000
_EFFECTS: Final = {
    "read": "reads only",
    "write": "acts on the world",
    "once": "acts on the world, and must not act twice",
}
_STATUSES: Final = {
    "starting": "not started yet",
    "executing": "still running",
    "paused": "paused",
    "not_reached": "not reached",
}


class Notice(NamedTuple):
    """A page that says one thing."""

    title: str
    text: str


_ASK_AGAIN: Final = "Ask the person who gave it to you for a new one."
_UNKNOWN: Final = Notice(
    "This link is not known here", f"It may be cut off, or too old. {_ASK_AGAIN}"
)
NOTICES: Final[Mapping[str, Notice]] = {
    "unknown-link": _UNKNOWN,
    "not-found": _UNKNOWN,
    "limit-exceeded": Notice(
        "Your answer is too large", "Nothing was decided. Go back, write less, and send it again."
    ),
    "invalid-body": Notice(
        "Your answer cannot be read",
        "Nothing was decided. Open the link again, and answer on its own page.",
    ),
    "forbidden": Notice(
        "This is not allowed here",
        "Nothing was decided. Open the link as it was given to you, and answer on its own page.",
    ),
    "method-not-allowed": Notice(
        "This link answers nothing", "It only shows something. Open it again to see it."
    ),
    "link-expired": Notice("This link has expired", _ASK_AGAIN),
    "link-used": Notice(
        "This link has been used", "It could answer once, and somebody has answered with it."
    ),
    "link-revoked": Notice("This link was taken back", _ASK_AGAIN),
    "link-of-another-request": Notice(
        "This answer belongs to another question",
        "Nothing was decided. Open the link again, and answer what it shows.",
    ),
    "execution-deleted": Notice(
        "This run was deleted", "There is nothing left to see or to answer."
    ),
    "request-answered": Notice(
        "Somebody has answered already", "The first answer counts. There is nothing left to do."
    ),
    "request-expired": Notice(
        "The time for an answer is over",
        "The run has gone on without one. Nothing was decided here.",
    ),
    "request-closed": Notice(
        "Nobody waits for this answer any more", "The run, or this step of it, has ended."
    ),
    "too-many-requests": Notice("Too many requests", "Try again in a moment."),
    "server-draining": Notice(
        "The service is restarting", "Nothing was decided. Try again in a minute."
    ),
    "command-pending": Notice(
        "Your answer is on its way", "It was kept, and is taken as soon as the run goes on."
    ),
}
"""By the code of the error."""
_OTHER: Final = Notice("This did not work", "Nothing was decided. Try again in a minute.")


def shared_page(run: SharedRun, link: LinkRecord) -> HTMLResponse:
    """Return the page with a result, and with the steps of a run."""
    texts = PageTexts()
    return _page(
        "shared.html",
        title=run.title,
        run=run,
        status=_STATUSES.get(run.status, run.status),
        ended=_moment(run.completed_at),
        until=_moment(link.expires_at),
        result=[(name, texts.html(value)) for name, value in run.result],
        steps=[
            (each, _STATUSES.get(each.status, each.status), texts.html(each.value, _LONGEST_STEP))
            for each in run.steps
        ],
    )


def request_page(linked: LinkedRequest, form: AnswerForm, status: int = 200) -> HTMLResponse:
    """Return the page with a request and its form."""
    request: Any = linked.request.request
    texts = PageTexts()
    fallback = field_of(request, "timeoutAction")
    value, tool = field_of(request, "value"), field_of(request, "tool")
    return _page(
        "request.html",
        status,
        title=linked.title,
        linked=linked,
        form=form,
        prompt=texts.html(request_text(request)) if decisions_of(request) or form.fields else "",
        goal=field_of(request, "goal"),
        change=field_of(request, "answer") if is_change_request(request) else None,
        forecast=_forecast(field_of(request, "forecast")),
        tool=field_of(tool, "name"),
        effect=_EFFECTS.get(str(field_of(tool, "effect"))),
        value="" if value is None else texts.html(value),
        until=None if linked.deadline is None else _moment(linked.deadline.isoformat()),
        fallback=words(fallback) if isinstance(fallback, str) else None,
    )


def answered_page(decision: str | None) -> HTMLResponse:
    """Return the page after an answer."""
    title = f"Recorded: {words(decision)}" if decision else "Your answer is recorded"
    return _notice(Notice(title, "The run goes on. This link has done its work."), "answered", 200)


def error_page(error: PlanwaveError) -> HTMLResponse:
    """Return the page that says why a link opens nothing, or why an answer was not taken."""
    page = _notice(NOTICES.get(error.code, _OTHER), error.code, error.status_hint)
    wait_s: float | None = getattr(error, "retry_after_s", None)
    if wait_s is not None:
        page.headers["Retry-After"] = str(math.ceil(wait_s))
    return page


def _notice(notice: Notice, code: str, status: int) -> HTMLResponse:
    return _page("notice.html", status, title=notice.title, text=notice.text, code=code)


def _page(template: str, http_status: int = 200, **values: Any) -> HTMLResponse:
    html = _TEMPLATES.get_template(template).render(style=_STYLE, **values)
    return HTMLResponse(html.encode(errors="replace"), http_status, dict(HEADERS))


def _moment(text: str | None) -> str | None:
    """Return a time for people, who may be anywhere: 30 Nov 2026, 14:05 UTC."""
    return None if text is None else f"{datetime.fromisoformat(text):%-d %b %Y, %H:%M} UTC"


def _forecast(forecast: Any) -> str | None:
    """Return what a plan will take, in a sentence."""
    calls, cost = field_of(forecast, "calls"), field_of(forecast, "cost_usd")
    counted = f"{calls} model call{'' if calls == 1 else 's'}" if isinstance(calls, int) else ""
    parts = [counted, _dollars(cost)]
    return ", ".join(filter(None, parts)) or None


def _dollars(cost: Any) -> str:
    """Return the most that it costs; nothing where that is unknown, or nothing."""
    high = field_of(cost, "high")
    return f"up to {amount_text('usd', high)}" if isinstance(high, int | float) and high > 0 else ""


_TEMPLATES: Final = jinja2.Environment(
    loader=jinja2.FileSystemLoader(_FOLDER), autoescape=True, trim_blocks=True, lstrip_blocks=True
)
