"""``planwave answer``: what a person decides, for an execution that waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from planwave.cli.controlling import Told, finish, tell_execution
from planwave.cli.interrupt import Interrupt, Interrupted
from planwave.cli.options import Invocation, JsonFlag, StorageOption, invocation
from planwave.cli.watching import ExecutionArgument
from planwave.cli.wording import cut, one_line, table
from planwave.errors import Conflict, InputError
from planwave.events import OpenRequest
from planwave.events.course import is_timer

if TYPE_CHECKING:
    from planwave.cli.workplace import Workplace
    from planwave.graph.model import Json

_QUESTION_CHARS: Final = 60
_FILE_SIGN: Final = "@"


RequestArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="REQUEST", help="Which question, where several are open.", show_default=False
    ),
]
DecisionOption = Annotated[
    str | None,
    typer.Option(
        "--decision", metavar="NAME", help="One of its actions. [default: ask on the terminal]"
    ),
]
NoteOption = Annotated[
    str | None, typer.Option("--note", metavar="TEXT", help="Kept with the answer.")
]
ValueOption = Annotated[
    str | None,
    typer.Option(
        "--value",
        metavar="JSON",
        help="What goes on instead of the value shown, or what the step would have given; "
        "@FILE reads it from a file. Without a decision, the whole answer.",
    ),
]
FormOption = Annotated[
    str | None,
    typer.Option("--form", metavar="JSON", help="The form, filled in; @FILE reads a file."),
]


def answer(
    ctx: typer.Context,
    name: ExecutionArgument,
    request: RequestArgument = None,
    decision: DecisionOption = None,
    note: NoteOption = None,
    value: ValueOption = None,
    form: FormOption = None,
    json: JsonFlag = False,
    storage: StorageOption = None,
) -> None:
    """Answer what an execution waits for; it goes on at once.

    Without `--decision` the question is shown and asked on the terminal. While no server holds the
    storage, this command itself runs the execution on, until it ends or waits again.

    For example:

    * `planwave answer last`
    * `planwave answer 0199c3a1 r17 --decision approve --note "well done"`
    * `planwave answer last --decision approve --value @letter.json --form '{"copies": 2}'`
    """
    asked = invocation(ctx, json, storage)
    given = _written(decision, note, value, form)

    async def tell(place: Workplace, execution_id: str, interrupt: Interrupt) -> Told | None:
        return await _answer(asked, place, interrupt, execution_id, request, given)

    finish(tell_execution(asked, name, tell))


async def _answer(
    asked: Invocation,
    place: Workplace,
    interrupt: Interrupt,
    execution_id: str,
    request_id: str | None,
    given: tuple[Json] | None,
) -> Told | None:
    from planwave.cli.asking import ask
    from planwave.cli.terminal import person_at
    from planwave.service.requests import checked_answer

    screen, found = asked.screen(), await place.requests(execution_id)
    chosen = _chosen(execution_id, found, request_id)
    if chosen is None:  # not open: whoever keeps it says what became of it
        await place.answer(execution_id, str(request_id), None if given is None else given[0])
        return _answered(asked, execution_id, str(request_id))
    if given is None:
        person = person_at(screen)
        if person is None:
            raise _nothing_decided(chosen)
        try:
            asking = ask(screen, person, chosen, chosen.path)
            given = await interrupt.cancelling(asking)
        except Interrupted as left:
            left.message = "left; the question stays open"
            raise
        if given is None:
            screen.note("the question stays open")
            return None
    checked = checked_answer(chosen.request, given[0])  # a service would tell the first fault only
    await place.answer(execution_id, chosen.request_id, checked)
    return _answered(asked, execution_id, chosen.request_id)


def _answered(asked: Invocation, execution_id: str, request_id: str) -> Told:
    return Told(
        "completed",
        f"Answered {request_id} of {execution_id}",
        f"Watch it with: {asked.again(f'watch {execution_id}')}",
        facts={"request_id": request_id},
    )


def _chosen(
    execution_id: str, found: list[OpenRequest], request_id: str | None
) -> OpenRequest | None:
    """Give the request that is meant; None for one that was named and is not open.

    Raises:
        Conflict: Nothing is asked, and nothing waits for a time.
        InputError: ``ambiguous-request``: several are open.
    """
    if request_id is not None:
        return next((each for each in found if each.request_id == request_id), None)
    found = [each for each in found if not is_timer(each.request)] or found
    if not found:
        raise Conflict(f"execution {execution_id} asks nothing", code="nothing-asked")
    if len(found) == 1:
        return found[0]
    named = ", ".join(f"{each.request_id} ({_question_of(each)})" for each in found)
    raise InputError(
        f"execution {execution_id} asks {len(found)} questions",
        code="ambiguous-request",
        hint=f"name one of them: {named}",
    )


def _question_of(request: OpenRequest) -> str:
    from planwave.events.course import asked

    return cut(f"{request.path}: {asked(request.request)}", _QUESTION_CHARS)


def _nothing_decided(request: OpenRequest) -> InputError:
    actions = [one_line(str(each)) for each in table(request.request).get("actions") or ()]
    way = f"--decision {', '.join(actions)}" if actions else "--value JSON"
    return InputError(
        f"{request.request_id} asks: {_question_of(request)}",
        code="usage",
        hint=f"nobody can be asked here, so give the answer: {way}",
    )


def _written(
    decision: str | None, note: str | None, value: str | None, form: str | None
) -> tuple[Json] | None:
    """Give the answer that was written on the command line; None where none was.

    Raises:
        InputError: It is no JSON, or its file cannot be read.
        NotFound: There is no such file.
    """
    fields: dict[str, Json] = {"decision": decision, "note": note}
    fields = {name: text for name, text in fields.items() if text is not None}
    if value is not None:
        fields["value"] = _json_of(value, "--value")
    if form is not None:
        fields["form"] = _json_of(form, "--form")
    if not fields:
        return None
    return (fields["value"],) if fields.keys() == {"value"} else (fields,)


def _json_of(written: str, option: str) -> Json:
    from planwave.cli.asking import json_in
    from planwave.cli.reading import read_json

    if written.startswith(_FILE_SIGN):
        return json_in(read_json(written.removeprefix(_FILE_SIGN)), option)
    return json_in(written, option)
