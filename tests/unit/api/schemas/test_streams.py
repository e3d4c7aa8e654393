"""The schemas of streamed messages are those of what is sent; the web UI's types are current, and all are used."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator

from planwave.api.schemas.streams import EVENT, PLAN_EVENT, SOCKET_MESSAGE
from tests.support.engine.golden_events import NAMES, golden_documents, golden_events
from tools.gen_web_types import (
    TARGET,
    imported_names,
    named_operations,
    page_modules,
    types_module,
)
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
        only_where_there_are_any = {"changes", "refused_changes", "plan_request"}
        assert snapshot.keys() - only_where_there_are_any == {*known["SnapshotMessage"]["required"]}
        for node in snapshot["nodes"]:
            schema = known["NodeSnapshot"]  # a traceback is the operator's alone
            assert (
                node.keys() == schema["properties"].keys() - {"traceback"} == {*schema["required"]}
            )


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


def test_the_web_ui_has_the_types_and_operations_that_it_uses_and_no_others() -> None:
    text = re.sub(r"/\*\*.*?\*/", "", TARGET.read_text("utf-8"), flags=re.DOTALL)
    types = dict(re.findall(r"^export (?:type|const) (\w+) = (.*?);\n$", text, re.M | re.DOTALL))
    modules = page_modules()
    imported = imported_names(modules)
    referred = {
        name for each, body in types.items() for name in re.findall(r"\w+", body) if name != each
    }
    assert "GraphDocument" in imported
    assert imported - types.keys() == set(), "missing: make generate"
    assert types.keys() - imported - referred == set(), "unused: make generate"
    operations = set(re.findall(r'^  (\w+): \["', types["ADDRESSES"], re.MULTILINE))
    every = {each["operationId"] for path in document()["paths"].values() for each in path.values()}
    assert operations == named_operations(modules) & every
    assert "getPlan" in operations < every


def test_uses_of_types_and_operations_are_found_in_the_forms_that_the_page_has() -> None:
    module = """
        import type { A, B as Other } from "@/api/types";
        import {
          C,
          type D,
        } from "@/api/types";
        import { E } from "@/ui/types";
        call("one", {}); send(\n  isNew ? "two" : "three", parts); addressOf("four");
        type Body = Operations["five"]["body"];
        const origin = "run"; recall("six");
    """
    assert imported_names([module]) == {"A", "B", "C", "D"}
    assert named_operations([module]) == {"one", "two", "three", "four", "five"}
