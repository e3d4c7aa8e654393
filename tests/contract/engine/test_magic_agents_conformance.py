"""Flows of magic_agents give the recorded results of its engine, except for listed differences.

Each flow goes through the import and runs with a model that echoes, as in the recording. A result that does
not match is listed in ``DIFFERENCES`` with the reason and with what happens here instead.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import pytest

from planwave.providers.protocols import ModelRequest
from planwave.storage.sql.store import Store
from tests.support.conformance.converted_runs import (
    SEARCH_HOST,
    SECRET,
    ConvertedRun,
    RuleModels,
    imported_graph,
    run_converted,
)
from tests.support.conformance.magic_agents_differences import DIFFERENCES
from tests.support.conformance.recordings import (
    CASES,
    EXPECTED,
    cases_of,
    compare,
    echoing,
    loaded,
)
from tests.support.outbound.fake_network import PUBLIC, FakeNetwork, response

_Json = dict[str, Any]
_FOUND = {"title": "T", "snippet": "S", "link": "L", "imageUrl": "I"}
_NO_STEPS = frozenset({"end", "client", "void", "send_message"})
"""Kinds whose result is not compared: what they show is."""


@echoing("magic_agents/current")
async def test_current(case: str, store: Store) -> None:
    await _run(case, store)


@echoing("magic_agents/legacy")
async def test_legacy(case: str, store: Store) -> None:
    await _run(case, store)


async def _run(case: str, store: Store) -> None:
    flow, expected = loaded(case, ".flow.json"), loaded(case, EXPECTED)
    # The service of the case with a loop gave nothing when it was recorded.
    found = {} if "fetch" in case else {"organic": [_FOUND]}
    body = json.dumps(found).encode()
    network = FakeNetwork({SEARCH_HOST: [PUBLIC]}, response(body, kind="application/json"))
    rebuilt = imported_graph(flow, "magic-agents")._replace(inputs=_given(flow, expected))
    seen = await run_converted(rebuilt, RuleModels(_echo), outbound=network.client(), store=store)
    compare(case, _here(seen, flow), _recorded(expected, flow), DIFFERENCES)
    assert all(SECRET.encode() in request for request in network.requests)
    asked = [json.loads(request.partition(b"\r\n\r\n")[2])["q"] for request in network.requests]
    assert sorted(asked) == sorted(_QUERIES.get(case.rpartition("/")[2], []))


_QUERIES: Final[Mapping[str, list[str]]] = {
    "parallel_fetch_aggregation": ["AI news", "AI latest updates", "AI 2024"],
    "run_agent": ["entropy"],
}
"""What each case that sends requests searches for."""


def _given(flow: _Json, expected: _Json) -> dict[str, _Json]:
    entry = next((node["id"] for node in flow["nodes"] if node["type"] == "user_input"), None)
    given: _Json = {"message": expected["message"]}
    if extras := (expected.get("build_kwargs") or expected.get("run_kwargs") or {}).get("extras"):
        given["extras"] = extras
    return {} if entry is None else {entry: given}


def _echo(request: ModelRequest, _: int) -> str:
    """Answer as the model of the cases; where JSON is asked for, with a query."""
    if "JSON" in (request.system or request.prompt[:500]) and "query rewrite" in request.prompt:
        return json.dumps({"query": "entropy"})
    user = request.prompt
    if user.startswith("["):  # lists are compact JSON here
        user = json.dumps(json.loads(user))
    return f"ECHO(sys={request.system or ''!r},user={user!r})"


def _here(seen: ConvertedRun, flow: _Json) -> _Json:
    if seen.refusal_codes:
        return {"refused": seen.refusal_codes}
    kinds = {node["id"]: node["type"] for node in flow["nodes"]}
    outputs: _Json = {}
    for path, node in seen.state.nodes.items():
        name = path.rpartition("/")[2]
        given = {handle: each["value"] for handle, each in (node.outputs or {}).items()}
        if name in kinds and kinds[name] not in _NO_STEPS and given and "error" not in given:
            outputs[name] = _main(kinds[name], given)
    return {"outputs": outputs, "shown": "".join(_shown(seen, flow))}


def _main(kind: str, given: _Json) -> Any:
    """Return what a step gave, of a choice with its branch."""
    if kind == "conditional":
        return given
    name = {"user_input": "message", "inner": "content"}.get(kind, "output")
    return given.get(name, next(iter(given.values())))


def _shown(seen: ConvertedRun, flow: _Json) -> list[str]:
    """Return the texts that people see: those of messages, and of models that stream."""
    streams = {
        node["id"]
        for node in flow["nodes"]
        if node["type"] == "llm" and (node.get("data") or {}).get("stream")
    }
    texts: list[str] = []
    for event in seen.events:
        data: Mapping[str, Any] = event.data
        if event.type == "node.event" and data["event_type"] == "message":
            texts.append(data["data"]["text"])
        if event.type == "node.completed" and str(event.path).rpartition("/")[2] in streams:
            texts.append(data["outputs"]["output"]["value"])
    return texts


def _recorded(expected: _Json, flow: _Json) -> _Json:
    kinds = {node["id"]: node["type"] for node in flow["nodes"]}
    outputs: _Json = {}
    for name, given in (expected.get("node_outputs") or {}).items():
        kind = kinds.get(name, "void")
        kept = {h: v for h, v in given.items() if h not in ("debug", "content", "end")}
        if kind in _NO_STEPS or not kept:
            continue
        outputs[name] = kept if kind == "conditional" else next(iter(kept.values()))
    return {"outputs": outputs, "shown": expected.get("user_text") or ""}


def test_every_recording_is_accounted_for() -> None:
    if not CASES.is_dir():
        pytest.skip("no ../shared/conformance")
    cases = [*cases_of("magic_agents/current"), *cases_of("magic_agents/legacy")]
    files = {f"{case}{suffix}" for case in cases for suffix in (".flow.json", EXPECTED)}
    found = {
        f"magic_agents/{file.parent.name}/{file.name}"
        for file in (CASES / "magic_agents").glob("*/*")
    }
    assert files == found
    assert DIFFERENCES.keys() <= set(cases)
    counts = {"match": len(cases) - len(DIFFERENCES), "differ": len(DIFFERENCES)}
    print(f"\n{counts}")  # noqa: T201
    assert counts == {"match": 46, "differ": 29}
