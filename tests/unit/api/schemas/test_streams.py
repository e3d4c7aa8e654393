"""The schemas of streamed messages are those of what is sent, and the web UI's types are current."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator

from planwave.api.schemas.streams import EVENT, PLAN_EVENT, SOCKET_MESSAGE
from tests.support.engine.golden_events import NAMES, golden_documents, golden_events
from tools.gen_web_types import TARGET, types_module
from tools.openapi_document import document


@cache
def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(
        {"$ref": f"#/components/schemas/{name}", "components": document()["components"]}
    )


@pytest.mark.parametrize("name", NAMES)
def test_recorded_events_and_states_match_their_schemas(name: str) -> None:
    known = document()["components"]["schemas"]
    for execution in golden_documents(name):
        validator(SOCKET_MESSAGE).validate([e.as_json() for e in golden_events(execution)])
        snapshot = {"type": "snapshot", **execution["state"], "logs": execution["text_log"]}
        validator(SOCKET_MESSAGE).validate(snapshot)
        assert snapshot.keys() == known["SnapshotMessage"]["properties"].keys()
        for node in snapshot["nodes"]:
            assert node.keys() == known["NodeSnapshot"]["properties"].keys()


def event(kind: str, path: str | None, attempt: int | None, data: Any) -> dict[str, Any]:
    told = {"execution_id": "x", "seq": 1, "at": "2026-01-01", "type": kind, "data": data}
    told |= {} if path is None else {"path": path}
    return told | ({} if attempt is None else {"attempt": attempt})


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        (EVENT, event("node.started", None, 1, {})),
        (EVENT, event("node.invented", "a", 1, {})),
        (EVENT, event("node.retrying", "a", 1, {"delay_s": 1})),
        (SOCKET_MESSAGE, {"type": "snapshot"}),
        (PLAN_EVENT, {"event": "title", "data": {}}),
    ],
)
def test_a_message_of_another_shape_does_not_match(name: str, wrong: Any) -> None:
    assert not validator(name).is_valid(wrong)


def test_the_types_of_the_web_ui_are_current() -> None:
    assert TARGET.read_text("utf-8") == types_module(), "bring them up to date: make generate"
