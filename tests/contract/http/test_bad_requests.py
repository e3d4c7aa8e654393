"""Invalid requests and ids, and how each is refused.

The cases are lines ``{id, area, input, expect}``; a few are written here, all others come from a
collection beside the repository, where it is there. They name the routes of another service; what
those are here is in ``OURS``. A line whose outcome nobody wrote down fails.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import tracemalloc
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from itertools import chain, repeat
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx2
import pytest
from pydantic import SecretStr

from planwave.api.app import create_app
from planwave.api.openapi import http_routes
from planwave.ids import new_id
from planwave.planner.planner import Planner
from planwave.service.service import Service
from planwave.settings import Limits, Settings
from planwave.storage.sqlite.store import SqliteStore
from tests.support.cpu_time import cpu_within
from tests.support.graph.builders import make_graph, text_node
from tests.support.llm.fake_providers import FakeProviders, library_registry
from tests.support.llm.planner_replies import DIAMOND_REPLY
from tests.support.llm.watched_model import WatchedModel
from tests.support.paths import SHARED
from tests.support.server.in_process_client import PROBLEM_TYPE, asgi_client, in_process_client
from tests.support.server.running_server import NO_RATE_LIMITS
from tests.support.service.dependencies import dependencies

TOKEN: Final = "t0ken-of-the-service"
JSON_OF_US: Final = {"content-type": "application/json", "authorization": "Bearer $TOKEN"}

HERE: Final[list[dict[str, Any]]] = [
    {
        "id": f"HERE-{number}",
        "area": "http",
        "input": {"method": "POST", "path": "/api/runs", "headers": headers, "body": body},
    }
    for number, (headers, body) in enumerate(
        [
            ({"content-type": "application/json"}, "{not even json"),
            ({"authorization": "Bearer $TOKENx"}, "{}"),
            ({"content-type": "application/json", "authorization": "Basic $TOKEN"}, "{}"),
            (JSON_OF_US, '{"goal": "a", "goal": "b"}'),
            (JSON_OF_US, '{"goal": NaN}'),
            (JSON_OF_US, '{"goal": "a\\u0000b"}'),
            (JSON_OF_US, "[" * 90_000 + "]" * 90_000),
            (JSON_OF_US, '{"goal": "x", "surprise": 1}'),
            ({**JSON_OF_US, "content-encoding": "gzip"}, "\x1f\x8b"),
            ({**JSON_OF_US, "host": "evil.example"}, '{"goal": "x"}'),
        ],
        1,
    )
]
"""Lines that are always tried; the statuses are in ``STATUS_NAMES``."""
IDS: Final = [
    "..", "../../x", "%2e%2e/x", "/etc/passwd", "..\\x", "x\0.json", "", "con", "a\n", "' OR 1=1 --",
    "019A0000-0000-7000-8000-00000000000F", "019a0000-0000-7000-8000-00000000000f.json",
    "019a0000-0000-7000-8000-00000000000f/../x", "\u0660\u0661\u0669a0000-0000-7000-8000-00000000000f",
]  # fmt: skip
"""Ids that are always tried."""

OURS: Final = {
    "/api/runs": "/api/run",
    "/api/runs/nope": "/api/executions/nope",
    # None of these is a route: approvals, uploads, imports, public flows, settings, static files.
    "/static/app.js": "/static/app.js",
    "/api/files": "/api/files",
    "/api/import": "/api/import",
    "/api/public/flows/$ID/run": "/api/public/flows/x/run",
    "/api/runs/$RUN/approve": f"/api/executions/{new_id()}/approve",
    "/docs": "/docs",
    "/api/settings": "/api/settings",
}
STATUS: Final = {
    "HERE-1": (401, "unauthorized"),
    "HERE-2": (401, "unauthorized"),
    "HERE-3": (401, "unauthorized"),
    "HERE-4": (422, "duplicate-key"),
    "HERE-5": (422, "invalid-number"),
    "HERE-6": (422, "invalid-text"),
    "HERE-7": (413, "limit-exceeded"),
    "HERE-8": (422, "invalid-body"),
    "HERE-9": (415, "unsupported-media-type"),
    "HERE-10": (403, "forbidden"),
    "HTP-303": (401, "unauthorized"),
    "HTP-304": (401, "unauthorized"),
    "HTP-305": (401, "unauthorized"),
    "HTP-306": (401, "unauthorized"),
    "HTP-308": (413, "limit-exceeded"),
    "HTP-309": (413, "limit-exceeded"),
    "HTP-312": (415, "unsupported-media-type"),
    "HTP-315": (400, "invalid-json"),
    "HTP-317": (422, "invalid-text"),
    "HTP-321": (422, "empty-goal"),
    "HTP-322": (413, "limit-exceeded"),
    "HTP-326": (404, "not-found"),
    "HTP-333": (403, "forbidden"),
    "HTP-335": (404, "not-found"),
    "HTP-336": (404, "not-found"),
    "HTP-337": (404, "not-found"),
    "HTP-338": (400, "invalid-json"),
    "HTP-340": (404, "not-found"),
    "HTP-341": (404, "not-found"),
    "HTP-342": (404, "not-found"),
    "HTP-345": (401, "unauthorized"),
    "HTP-346": (404, "not-found"),
}
TWICE: Final = {"HTP-323", "HTP-324"}
"""Lines about repeated requests; ``tests/unit/api/middleware/test_idempotency.py`` tries them."""


def _collected(*areas: str) -> list[dict[str, Any]]:
    """The lines of the collection of these areas; none where it is not there."""
    file = SHARED / "bad_inputs.jsonl"
    spec = importlib.util.spec_from_file_location("expanding", SHARED / "expand_bad_inputs.py")
    if not file.is_file() or spec is None or spec.loader is None:
        return []
    expanding = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(expanding)
    lines = map(json.loads, file.read_text("utf-8").splitlines())
    return [
        {**line, "input": expanding.expand(line["input"])}
        for line in lines
        if line["area"] in areas
    ]


def _lines(*areas: str) -> list[Any]:
    found = [line for line in _collected(*areas) if line["id"] not in TWICE]
    skipped = pytest.mark.skip(reason="no ../shared/bad_inputs.jsonl")
    none = [pytest.param({}, marks=skipped, id="collection")]
    return [pytest.param(each, id=each["id"]) for each in found] or none


# -- HTTP


@asynccontextmanager
async def service(models: WatchedModel | None = None) -> AsyncIterator[httpx2.AsyncClient]:
    """The whole application in process, with a token and a real planner."""
    providers = FakeProviders()
    planner = Planner(
        models or WatchedModel([DIAMOND_REPLY] * 3),
        providers,
        library_registry(providers),
        Limits(),
    )
    settings = Settings(token=SecretStr(TOKEN), limits=NO_RATE_LIMITS)
    app = create_app(
        settings, lambda _: Service(dependencies(planner=planner, limits=NO_RATE_LIMITS))
    )
    async with asgi_client(app) as client:
        yield client


def _headers(given: Mapping[str, str]) -> dict[str, bytes]:
    return {name: value.replace("$TOKEN", TOKEN).encode("latin-1") for name, value in given.items()}


def _body(line: dict[str, Any]) -> Any:
    body = line["input"]["body"]
    if line["id"] == "HTP-315":
        return b'\xff\xfe{"prompt": "x"}'
    if isinstance(body, dict):
        body = json.dumps(body)
    if body is None:
        return None
    if len(body) > 10_000_000:
        return _in_chunks(len(body))
    return body.replace('"goal"', '"prompt"').encode()


async def _in_chunks(size: int) -> AsyncIterator[bytes]:
    chunk = b"a" * 65_536
    for _ in range(size // len(chunk)):
        yield chunk


async def answer_to(client: httpx2.AsyncClient, line: dict[str, Any]) -> httpx2.Response:
    requested = line["input"]
    return await client.request(
        requested["method"],
        OURS[requested["path"]],
        headers=_headers(requested["headers"]),
        content=_body(line),
    )


@pytest.mark.parametrize(
    "line", [*(pytest.param(each, id=each["id"]) for each in HERE), *_lines("http")]
)
async def test_invalid_request_is_rejected_cheaply(line: dict[str, Any]) -> None:
    async with service() as client:
        await client.get("/healthz")
        tracemalloc.start()
        try:
            with cpu_within(5):
                answer = await answer_to(client, line)
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert (answer.status_code, answer.json()["code"]) == STATUS[line["id"]], answer.text
        assert answer.headers["content-type"] == PROBLEM_TYPE
        assert TOKEN not in answer.text
        assert "Traceback" not in answer.text
        assert most < 8_000_000
        listed = await client.get("/api/executions", headers=_headers(JSON_OF_US))
        assert listed.json()["executions"] == []


async def test_cookie_from_foreign_origin_is_rejected() -> None:
    async with service() as client:
        opened = await client.post("/api/session", json={"token": TOKEN})
        assert opened.status_code == 204
        for origin in ("https://evil.example", "null", None):
            headers = {} if origin is None else {"Origin": origin}
            refused = await client.post("/api/run", json={"prompt": "x"}, headers=headers)
            assert (refused.status_code, refused.json()["code"]) == (403, "forbidden"), origin


async def test_many_ranges_and_long_boundary_are_cheap() -> None:
    async with service() as client:
        ranges = "bytes=" + ",".join(f"{number}-" for number in range(3_000))
        boundary = "multipart/form-data; boundary=" + "a" * 20_000
        await client.get("/docs", headers=_headers(JSON_OF_US))  # made once
        with cpu_within(1):
            page = await client.get("/docs", headers={**_headers(JSON_OF_US), "range": ranges})
            assert page.status_code == 200
            upload = {**_headers(JSON_OF_US), "content-type": boundary}
            refused = await client.post("/api/run", content=b"--a", headers=upload)
            assert refused.status_code == 415


# -- ids

BODIES: Final = {
    "PUT": {"name": "x"},
    "POST": {},
    "PATCH": {"operations": [{"op": "set_title", "title": "x"}]},
}
BODIES_OF_ROUTES: Final = {
    ("PUT", "/api/flows/{}/publication"): {"model": True},
    ("PUT", "/api/flows/{}/input-sets/a"): {"inputs": {}},
    ("PATCH", "/api/chats/{}"): {"title": "x"},
    ("POST", "/api/plans/{}/refine"): {"request": "x"},
    ("POST", "/api/executions/{}/replan"): {"request": "x"},
    ("POST", "/api/executions/{}/revise"): {"graph": {"nodes": [], "edges": []}},
    ("PATCH", "/api/executions/{}"): {"name": "x"},
}
"""Those that others of their method would not do for."""
QUERIES: Final = {"export": {"to": "mermaid"}}
"""What routes need in their query, by the end of their path."""
ANY_VERSION: Final = {"if-match": "*"}
"""Of a thing that is there; what changes a plan needs it."""
ID_PARAMETER: Final = re.compile(r"{\w+_id(?::path)?}")


ROUTES: Final = tuple(http_routes(create_app(Settings(), lambda _: Service(dependencies()))))
PLAIN_PATHS: Final = frozenset(str(route.path) for route in ROUTES if "{" not in str(route.path))
"""Paths without ids: clients that resolve ``..`` themselves may reach them, as they may directly."""


def routes_with_ids() -> list[tuple[str, str]]:
    """Return method and path of every route about one stored thing; each id in it as ``{}``."""
    return [
        (method, _with_other_parameters(ID_PARAMETER.sub("{}", str(route.path))))
        for route in ROUTES
        if ID_PARAMETER.search(str(route.path)) and str(route.path).startswith("/api/")
        for method in sorted(route.methods or ())
    ]


def _with_other_parameters(path: str) -> str:
    return path.replace("{path:path}", "a").replace("{revision}", "1").replace("{name}", "a")


ROUTES_WITH_IDS: Final = routes_with_ids()


def body_of(method: str, path: str) -> dict[str, Any] | None:
    """Return a body that a route takes; ``path`` has ``{}`` in the place of ids."""
    return BODIES_OF_ROUTES.get((method, path)) or BODIES.get(method)


@pytest.mark.parametrize(("method", "path"), ROUTES_WITH_IDS)
async def test_unknown_id_is_not_found(method: str, path: str) -> None:
    async with in_process_client(dependencies()) as calls:
        name = new_id()
        answer = await calls.request(
            method,
            path.format(name, name),
            json=body_of(method, path),
            params=QUERIES.get(path.rpartition("/")[2]),
            headers=ANY_VERSION,
        )
        assert (answer.status_code, answer.json()["code"]) == (404, "not-found")
        assert answer.headers["content-type"] == PROBLEM_TYPE


_TOUCHES: Final = frozenset(
    {
        "open", "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.listdir", "os.scandir",
        "os.truncate", "os.link", "os.symlink", "os.chmod", "os.utime", "sqlite3.connect",
    }
)  # fmt: skip
_touched: list[str] | None = None


def _audit(event: str, given: tuple[Any, ...]) -> None:
    if _touched is not None and event in _TOUCHES:
        _touched.extend(str(each) for each in given[:2] if isinstance(each, str | Path))


@pytest.fixture(scope="module", autouse=True)
def _hook() -> None:
    sys.addaudithook(_audit)  # stays as long as the process; does nothing unless asked to


@contextmanager
def touched() -> Iterator[list[str]]:
    """Write down which files this process touches."""
    global _touched
    _touched = found = []
    try:
        yield found
    finally:
        _touched = None


class Kept:
    """A service over a directory, with a file beside that directory that is nobody's business."""

    def __init__(self, place: Path, client: httpx2.AsyncClient, own: Service) -> None:
        self.data = place / "data"
        self.secret = place / "secret.json"
        self.client = client
        self.own = own

    async def executed(self) -> str:
        plan = await self.own.plans.create("goal")
        record = await self.own.executions.execute(plan.plan_id)
        await self.own.executions.wait(record.execution_id)
        return record.execution_id


@pytest.fixture
async def stored_service(tmp_path: Path) -> AsyncIterator[Kept]:
    data = tmp_path / "data"
    data.mkdir()
    (tmp_path / "secret.json").write_text('{"status": "canary"}')
    (tmp_path / "x").write_text("canary")
    parts = dependencies(
        make_graph(text_node("a")),
        store=SqliteStore.open(data),
        directory=data,
        limits=NO_RATE_LIMITS,
    )
    app = create_app(Settings(limits=NO_RATE_LIMITS), lambda _: Service(parts))
    async with asgi_client(app) as client:
        yield Kept(tmp_path, client, app.state.planwave.service)


def _bad_ids() -> list[Any]:
    collected = [
        pytest.param(line["input"], id=line["id"])
        for line in _collected("storage-id", "storage-authz")
        if isinstance(line["input"], str)
    ]
    return [*(pytest.param(each, id=ascii(each)[:30]) for each in IDS), *collected]


@pytest.fixture(scope="module")
def first_ids() -> Iterator[Sequence[str]]:
    """Ids that a test sends before its own: after the first, all is imported and read that ever will be."""
    return chain([["no-id"]], repeat(()))


@pytest.mark.parametrize("bad", _bad_ids())
async def test_invalid_id_is_not_found_and_touches_no_file(
    stored_service: Kept, first_ids: Iterator[Sequence[str]], bad: str
) -> None:
    execution_id = await stored_service.executed()
    before = {path: path.stat().st_mtime_ns for path in stored_service.data.parent.rglob("*")}
    if bad.startswith("RUN-1"):
        bad = execution_id.upper()
    for each in (*next(first_ids), bad):
        with touched() as files:
            for method, route in ROUTES_WITH_IDS:
                for written in {each, quote(each, safe="")}:
                    try:
                        path = httpx2.URL("http://127.0.0.1" + route.format(written, written))
                    except httpx2.InvalidURL:
                        continue
                    if path.path in PLAIN_PATHS:
                        continue
                    answer = await stored_service.client.request(
                        method, path, json=body_of(method, route), headers=ANY_VERSION
                    )
                    assert answer.status_code in (404, 405), (method, path, answer.text)
                    assert answer.headers["content-type"] == PROBLEM_TYPE
                    assert "canary" not in answer.text
    assert [file for file in files if not Path(file).is_relative_to(stored_service.data)] == []
    assert {p: p.stat().st_mtime_ns for p in stored_service.data.parent.rglob("*")} == before
    assert (await stored_service.client.get(f"/api/executions/{execution_id}")).status_code == 200


async def test_file_audit_detects_access(stored_service: Kept) -> None:
    with touched() as files:
        stored_service.secret.read_text()
        await stored_service.executed()
    assert str(stored_service.secret) in files
    assert any(Path(file).is_relative_to(stored_service.data) for file in files)


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"filter[$.x') OR 1=1 --]": "y"}, 200),
        ({"order_by": "created_at; DROP TABLE runs"}, 200),
        ({"q": "' OR 1=1 --"}, 200),
        ({"q": "%"}, 200),
        ({"status": "completed' OR 1=1 --"}, 422),
        ({"since": "2026' OR 1=1 --"}, 422),
        ({"plan_id": "' OR 1=1 --"}, 422),
        ({"cursor": "eyJvZmZzZXQiOi0xfQ=="}, 422),
        ({"limit": "1000000"}, 422),
        ({"limit": "-1"}, 422),
    ],
    ids=str,
)
async def test_query_parameters_are_values(
    stored_service: Kept, query: dict[str, str], status: int
) -> None:
    """There is no filter and no order to choose: such parameters change nothing."""
    execution_id = await stored_service.executed()
    for path in ("/api/executions", "/api/plans"):
        if path == "/api/plans" and {"status", "since", "plan_id"} & set(query):
            continue
        answer = await stored_service.client.get(path, params=query)
        assert answer.status_code == status, answer.text
        if "q" in query:
            assert answer.json()[path.removeprefix("/api/")] == []
    listed = (await stored_service.client.get("/api/executions")).json()["executions"]
    assert [each["execution_id"] for each in listed] == [execution_id]


async def test_code_like_document_stays_data(stored_service: Kept) -> None:
    document = {"lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": {"command": "id"}}
    plan = await stored_service.own.plans.create("goal")
    body = {"plan_id": plan.plan_id, "inputs": {"a": {"output": document}}, "start": True}
    created = await stored_service.client.post("/api/execute", json=body)
    assert created.status_code == 202, created.text
    execution_id = created.json()["execution_id"]
    await stored_service.own.executions.wait(execution_id)
    shown = (await stored_service.client.get(f"/api/executions/{execution_id}")).json()
    assert shown["inputs"] == {"a": {"output": document}}


async def test_symlink_in_storage_is_not_followed(stored_service: Kept) -> None:
    plan = await stored_service.own.plans.create("goal")
    record = await stored_service.own.executions.create(plan.plan_id)
    link = stored_service.data / f"{record.execution_id}.json"
    link.symlink_to(stored_service.secret)
    secret = stored_service.secret.read_bytes()
    await stored_service.own.executions.start(record.execution_id)
    await stored_service.own.executions.wait(record.execution_id)
    for rest in ("", "/result", "/document"):
        answer = await stored_service.client.get(f"/api/executions/{record.execution_id}{rest}")
        assert answer.json()["status"] == "completed"
    link.unlink()
    link.symlink_to(stored_service.secret)
    answer = await stored_service.client.get(f"/api/executions/{record.execution_id}/document")
    assert answer.json()["status"] == "completed"
    gone = await stored_service.client.delete(f"/api/executions/{record.execution_id}")
    assert gone.status_code == 204
    assert stored_service.secret.read_bytes() == secret
    assert not link.is_symlink()


TRIED: Final = {
    "STO-295", "STO-296", "STO-297", "STO-298", "STO-299", "STO-300", "STO-302",
    "WSS-351", "WSS-353", "WSS-354", "WSS-356", "WSS-357", "WSS-358", "WSS-359", "WSS-361", "WSS-363",
}  # fmt: skip
"""Lines tried by a test of their own: those of the store above, those of WebSockets in
``tests/unit/api/streaming/test_websocket.py`` and, where a limit is passed, in ``test_limits.py``."""


@pytest.mark.parametrize("line", _lines("ws", "storage-authz"))
def test_collection_has_no_untried_line(line: dict[str, Any]) -> None:
    assert line["id"] in TRIED
