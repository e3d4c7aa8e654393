"""A secret that comes back by any way into an execution: no event, record, prompt or result holds it.

Every spelling goes by every way. A way is a node type, or a tool; a new way belongs into ``WAYS``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from planwave.errors import ToolError
from planwave.graph.model import DataValue, Json
from planwave.graph.protocols import ExecutionResult, FlowContext, NodeEvent, Suspension
from planwave.nodes.recorded_calls import record_call
from planwave.redaction import Redactor
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.nodes.agent_runs import Kit, agent_graph, calls, tool
from tests.support.nodes.nested_graphs import graph_document, node_document, run_to_end
from tests.support.nodes.node_context import services_with
from tests.support.secret_spellings import CANARY, SPELLINGS, shows

REDACTOR = Redactor({"crm": CANARY})


SPELLED = {name: spell(CANARY) for name, spell in SPELLINGS.items()}


class Ways:
    """One node: it lets a text in by one way."""

    def __init__(self, text: str) -> None:
        self._text = text

    async def result(self, context: FlowContext) -> ExecutionResult:
        value: Json = {"deep": [{self._text: self._text}]}
        return ExecutionResult({"output": DataValue("json", value)})

    async def exception(self, context: FlowContext) -> ExecutionResult:
        raise RuntimeError(f"it said {self._text}")

    async def error_with_hint(self, context: FlowContext) -> ExecutionResult:
        raise ToolError(f"it said {self._text}", code="odd")

    async def group(self, context: FlowContext) -> ExecutionResult:
        raise ExceptionGroup("several", [ValueError(self._text)])

    async def request(self, context: FlowContext) -> Suspension:
        return Suspension({"kind": "form", "message": self._text}, {"state": self._text})

    async def emitted(self, context: FlowContext) -> ExecutionResult:
        context.emit("log", {"message": self._text})
        context.emit("seen", {"text": self._text})
        context.emit("delta", {"text": self._text})
        return ExecutionResult({})

    async def recorded(self, context: FlowContext) -> ExecutionResult:
        await context.record("seen", {self._text: 1})
        return ExecutionResult({})

    async def events(self, context: FlowContext) -> ExecutionResult:
        return ExecutionResult({}, [NodeEvent("n", "ways", "seen", "", {"text": self._text})])

    async def generator(self, context: FlowContext) -> AsyncIterator[Any]:
        yield NodeEvent("n", "ways", "seen", "", {"text": self._text})
        yield ExecutionResult({})

    async def once(self, context: FlowContext) -> ExecutionResult:
        value = await context.runtime.once("key", self._value)
        return ExecutionResult({"output": DataValue("json", value)})

    async def call(self, context: FlowContext) -> ExecutionResult:
        value = await record_call(context, "fetch", "x", {}, self._value)
        return ExecutionResult({"output": DataValue("json", value)})

    async def failed_call(self, context: FlowContext) -> ExecutionResult:
        async def fail() -> Json:
            raise ToolError(self._text, code="odd")

        await record_call(context, "fetch", "x", {}, fail, keep=(ToolError,))
        return ExecutionResult({})

    async def _value(self) -> Json:
        return [self._text]


WAYS = [name for name in vars(Ways) if not name.startswith("_")]


class AnyWay:
    """The node type: data name the way and the spelling, and hold neither secret nor its spelling."""

    node_type = "ways"
    template_fields = None

    def execute(self, data: Mapping[str, Json], inputs: Any, context: FlowContext) -> Any:
        return getattr(Ways(SPELLED[str(data["spelling"])]), str(data["way"]))(context)

    async def resume(self, *_: Any) -> ExecutionResult:
        return ExecutionResult({})


async def stored(graph: Any, *types: Any, reply: Any = None) -> tuple[str, Any]:
    """Run a graph; return all that the store and the model got, as text, and the result."""
    store = MemoryStore()
    services, models = services_with(
        reply or (lambda _: ["reply"]), recorder=store, redactor=REDACTOR
    )
    result = await run_to_end(graph, *types, services=services, store=store)
    events = await store.events(result.execution_id)
    recorded = await store.calls([result.execution_id])
    return str((events, recorded, models.requests, result)), result


def leaks(text: str) -> list[str]:
    """Return the spellings that a text still holds."""
    return [*shows(text), *(name for name, spelled in SPELLED.items() if spelled in text)]


@pytest.mark.parametrize("way", WAYS)
async def test_no_way_of_a_node_stores_a_secret(way: str) -> None:
    nodes = [
        node_document(f"n{number}", "ways", way=way, spelling=spelling)
        for number, spelling in enumerate(SPELLED)
    ]
    text, _ = await stored(graph_document(*nodes), AnyWay())
    assert leaks(text) == []
    assert text.count("[secret crm]") >= len(nodes)


@pytest.mark.parametrize("fails", [False, True])
async def test_no_tool_shows_a_model_a_secret(fails: bool) -> None:
    async def act(spelling: str) -> Json:
        if fails:
            raise ToolError(f"it said {SPELLED[spelling]}", code="odd")
        return {"you": SPELLED[spelling]}

    def reply(request: Any) -> Any:
        is_first = not any(each.role == "assistant" for each in request.messages)
        return [calls(*(("look", {"spelling": each}) for each in SPELLED)) if is_first else "done"]

    text, result = await stored(agent_graph(), Kit([tool("look", act)]), reply=reply)
    assert result.status == "completed"
    assert leaks(text) == []
    assert text.count("[secret crm]") >= len(SPELLED)


async def test_a_retry_policy_still_names_the_class_of_an_error_that_held_a_secret() -> None:
    node = node_document("n", "ways", way="exception", spelling="as it is")
    node["policy"] = {"retry": {"attempts": 2, "backoffS": 0, "on": ["RuntimeError"]}}
    text, result = await stored(graph_document(node), AnyWay())
    assert result.status == "failed"
    assert "node.retrying" in text
    assert leaks(text) == []
