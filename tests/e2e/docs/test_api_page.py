"""docs/api.md and its parts are true: their examples run, in order, on a real server, and miss no route."""

from __future__ import annotations

import json
import os
import re
import shlex
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import httpx2
import pytest
from starlette.routing import WebSocketRoute

from tests.support.cli.command_process import isolated_directory, read_until, start_command
from tests.support.cli.doc_page import LEFT_OUT
from tests.support.llm.fake_llm_server import asks_for_plan, fake_llm_in_thread, prompt_of
from tests.support.llm.planner_replies import planner_reply, reply_edge
from tests.support.paths import ROOT
from tests.support.processes.forked_process import run_forked

PAGES = (
    "plans.md",
    "executions.md",
    "flows.md",
    "requests.md",
    "chats.md",
    "triggers.md",
    "access.md",
    "openai.md",
    "service.md",
)
"""The pages of docs/api, in the order in which their examples run."""
INDEX = (ROOT / "docs" / "api.md").read_text("utf-8")
DOCS = "\n".join((ROOT / "docs" / "api" / page).read_text("utf-8") for page in PAGES)
ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00")
PLAN = planner_reply(
    {"id": "facts", "name": "Facts", "type": "text", "data": {"text": "Water boils at 100 °C."}},
    {"id": "note", "name": "Note", "type": "text", "data": {"text": "Note: {{ input }}"}},
    edges=[reply_edge("facts", "note")],
    title="A note about water",
)

KELVIN = json.dumps(
    {
        "answer": "Adds a step for kelvin.",
        "operations": [
            {
                "op": "add_node",
                "node": {
                    "id": "kelvin",
                    "name": "Kelvin",
                    "type": "text",
                    "data": {"text": "373 K"},
                },
            }
        ],
    }
)


@dataclass(frozen=True)
class Example:
    """One example: what is run, and what comes of it.

    ``route`` is the heading it stands under, ``kind`` the language of the ``answer``.
    """

    route: str
    language: str
    command: str
    status: int | None
    kind: str
    answer: str


EXAMPLE = re.compile(
    r"^### `(?P<route>[^`]+)`$|"
    r"^```(?P<language>console|python)\n(?P<command>.*?)^```\n"
    r"(?:\n`(?P<status>\d{3}) [^`]*`\n)?"
    r"(?:\n```(?P<kind>json|text)\n(?P<answer>.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)


def examples() -> Iterator[Example]:
    route = ""
    for found in EXAMPLE.finditer(DOCS):
        if found["route"]:
            route = found["route"]
            continue
        status = int(found["status"]) if found["status"] else None
        yield Example(
            route, found["language"], found["command"], status, found["kind"] or "",
            found["answer"] or "",
        )  # fmt: skip


class Call(NamedTuple):
    """What a command line of curl sends."""

    method: str
    url: str
    headers: dict[str, str]
    body: str | None
    seconds: float | None
    """How long a stream that does not end is read."""


def call_of(command: str) -> Call:
    """Read ``$ curl …``; cookies are left to the client, which keeps them anyway."""
    words = iter(shlex.split(command))
    assert [next(words), next(words)] == ["$", "curl"]
    method, url, body, seconds = "", "", None, None
    headers: dict[str, str] = {}
    for word in words:
        match word:
            case "-N":
                pass
            case "--max-time":
                seconds = float(next(words))
            case "-c" | "-b":
                next(words)
            case "-X":
                method = next(words)
            case "-H":
                name, _, headers[name] = next(words).partition(": ")
            case "--json":
                body = next(words)
                json.loads(body)
                headers["Content-Type"] = "application/json"
            case _:
                assert word[0] != "-", word
                url = word
    return Call(method or ("GET" if body is None else "POST"), url, headers, body, seconds)


class Reader:
    """Runs examples as a reader would, who has other ids and another time.

    What only looks is done again for a while (``patience_s``) until it is as the page says: what was
    started a moment ago needs a moment.
    """

    def __init__(self, url: str, client: httpx2.Client, patience_s: float = 60.0) -> None:
        self._url = url
        self._client = client
        self._patience_s = patience_s
        self._ids: dict[str, str] = {}

    def run(self, example: Example) -> None:
        looks = example.language == "console" and call_of(example.command).method == "GET"
        until = time.monotonic() + (self._patience_s if looks else 0)
        while True:
            try:
                self._run(example)
                return
            except AssertionError:
                if time.monotonic() >= until:
                    raise
            time.sleep(0.02)

    def _run(self, example: Example) -> None:
        command = ID.sub(lambda found: self._ids.get(found[0], found[0]), example.command)
        if example.language == "python":
            answer = self._python(command)
        else:
            status, answer = self._send(call_of(command.replace("$PLANWAVE", self._url)))
            assert status == example.status, (example.command, answer)
        match example.kind:
            case "json":
                self._same(json.loads(example.answer), json.loads(answer), example.route)
            case "text":
                assert pattern_of(example.answer).fullmatch(answer.strip()), answer
            case _:
                assert answer == ""

    def _send(self, call: Call) -> tuple[int, str]:
        """Return the status and the body, or what came of it in the seconds of the call."""
        text = ""
        with self._client.stream(
            call.method, call.url, headers=call.headers, content=call.body,
            timeout=call.seconds or 60.0,
        ) as received:  # fmt: skip
            try:
                for chunk in received.iter_text():
                    text += chunk
            except httpx2.ReadTimeout:
                if call.seconds is None:
                    raise
        return received.status_code, text

    def _python(self, code: str) -> str:
        done = run_forked("-W", "error", "-c", code, env={**os.environ, "PLANWAVE": self._url})
        assert (done.stderr, done.returncode) == ("", 0)
        return done.stdout

    def _same(self, said: Any, found: Any, at: str) -> None:
        """Compare what the page says with what came, but for what is left out, ids and times."""
        if said == LEFT_OUT:
            return
        assert type(said) is type(found), (at, said, found)
        if isinstance(said, dict):
            self._same_object(said, found, at)
        elif isinstance(said, list):
            rest = said[-1:] == [LEFT_OUT]
            assert len(found) >= len(said) - 1 if rest else len(found) == len(said), (at, found)
            for number, each in enumerate(said[:-1] if rest else said):
                self._same(each, found[number], f"{at}/{number}")
        elif isinstance(said, str):
            self._same_text(said, found, at)
        else:
            assert said == found, at

    def _same_object(self, said: Mapping[str, Any], found: Mapping[str, Any], at: str) -> None:
        named = said.keys() - {LEFT_OUT}
        assert named <= found.keys() if LEFT_OUT in said else named == found.keys(), (at, found)
        for name in named:
            self._same(said[name], found[name], f"{at}/{name}")

    def _same_text(self, said: str, found: str, at: str) -> None:
        if TIME.fullmatch(said):
            assert TIME.fullmatch(found), (at, found)
            return
        for known, real in zip(ID.findall(said), ID.findall(found), strict=True):
            assert self._ids.setdefault(known, real) == real, (at, said, found)
        assert ID.sub("", said) == ID.sub("", found), at


def pattern_of(answer: str) -> re.Pattern[str]:
    """Give a pattern for a text of which parts are left out."""
    return re.compile(".*?".join(map(re.escape, answer.strip().split(LEFT_OUT))), re.DOTALL)


def route_of(example: Example) -> str:
    """Give the route an example calls: ``GET /api/plans``."""
    if example.language == "python":
        return example.route
    call = call_of(example.command)
    path = call.url.removeprefix("$PLANWAVE").partition("?")[0]
    for route in routes():
        method, _, template = route.partition(" ")
        steps = re.sub(r"\\\{(\w+)\\\}", "[^/]+", re.escape(template))
        if method == call.method and re.fullmatch(steps, path):
            return route
    raise AssertionError(f"no route for {call.method} {path}")


@cache
def routes() -> frozenset[str]:
    """Give every route of the OpenAPI document, such as ``GET /api/plans``, and every WebSocket."""
    from planwave.api.app import create_app
    from planwave.service.service import Service
    from planwave.settings import Settings
    from tests.support.service.dependencies import dependencies

    app = create_app(Settings(), lambda _: Service(dependencies()))
    sockets = {
        f"WS {each.path.replace(':path', '')}"
        for each in app.routes
        if isinstance(each, WebSocketRoute)
    }
    return sockets | frozenset(
        f"{method.upper()} {path}"
        for path, each in app.openapi()["paths"].items()
        for method in each
    )


def reply_to(body: dict[str, Any]) -> str:
    """Write the same plan for every goal, and short replies."""
    if asks_for_plan(body):
        return PLAN
    if "Add the boiling point in kelvin" in prompt_of(body):
        return KELVIN
    return "Unplug it." if "printer" in prompt_of(body) else "Water."


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of ``planwave serve``, with the settings of the page and a scripted model."""
    with (
        pytest.MonkeyPatch.context() as monkeypatch,
        fake_llm_in_thread(reply_to=reply_to) as llm,
    ):
        directory = tmp_path_factory.mktemp("service")
        isolated_directory(directory, monkeypatch)
        (settings,) = re.findall(r"^```toml\n(.*?)^```$", INDEX, re.DOTALL | re.MULTILINE)
        (directory / "settings.toml").write_text(settings, "utf-8")
        monkeypatch.setenv("PLANWAVE_CONFIG", "settings.toml")
        monkeypatch.setenv("SHOP_SECRET", "a long shared secret")
        monkeypatch.setenv("PARTNER_SECRET", f"whsec_{b64encode(bytes(24)).decode()}")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", llm.openai_url)
        for limit in ("REQUESTS_PER_S", "REQUESTS_BURST"):
            monkeypatch.setenv(f"PLANWAVE_LIMIT_{limit}", "100000")
        with start_command("serve", "--port", "0", "--json") as process:
            try:
                yield json.loads(read_until(process.stdout, "\n"))["url"]
            finally:
                process.kill()


@pytest.mark.slow
def test_every_example_is_true(url: str) -> None:
    with httpx2.Client() as client:
        reader = Reader(url, client)
        for example in examples():
            reader.run(example)


def test_every_route_has_an_example() -> None:
    shown = {example.route for example in examples() if route_of(example) == example.route}
    assert shown == routes()
    assert {example.route for example in examples()} == shown


def test_the_index_links_the_pages_in_their_order() -> None:
    assert re.findall(r"^\| \[[^]]+\]\(api/([a-z]+\.md)\) \|", INDEX, re.MULTILINE) == [*PAGES]
    assert {page.name for page in (ROOT / "docs" / "api").iterdir()} == {*PAGES}


def test_every_block_is_an_example_but_the_address_and_the_settings() -> None:
    used = sum(1 + bool(example.kind) for example in examples())
    assert len(re.findall(r"^```\w", DOCS, re.M)) == used
    assert re.findall(r"^```(\w+)\n", INDEX, re.M) == ["sh", "toml"]


def test_false_example_is_detected(url: str) -> None:
    health = Example("GET /healthz", "console", "$ curl $PLANWAVE/healthz", 200, "json", "{}")
    with httpx2.Client() as client, pytest.raises(AssertionError, match="healthz"):
        Reader(url, client, patience_s=0).run(health)
