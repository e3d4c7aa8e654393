"""Changes that a model writes while a run may act and its budget ends: what asks, what acts, and what it costs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest

from planwave.bootstrap import open_models, open_providers
from planwave.errors import PermanentError
from planwave.graph.model import DataValue
from planwave.graph.protocols import ExecutionResult
from planwave.planner.capabilities import PlanRules
from planwave.planner.planner import Planner
from planwave.providers.protocols import ModelRequest
from planwave.settings import Limits, Settings
from planwave.testing import FakeModel
from tests.support.llm.fake_providers import library_registry
from tests.support.polling import until
from tests.support.server.in_process_client import InProcessClient, in_process_client
from tests.support.service.dependencies import dependencies
from tests.support.service.written_changes import changes

ENDS = ("completed", "failed", "cancelled")
GRAPH = {"nodes": [{"id": "bad", "type": "fails"}, {"id": "slow", "type": "spends"}], "edges": []}
CALLS = {"enough": 10, "used while it is written": 2, "used while it waits": 2}
"""How many calls of models the budget has, by when it ends."""


class Fails:
    """A node type that fails for good."""

    node_type = "fails"

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        raise PermanentError("it broke")


class Acts:
    """A node type that calls a model, and then acts.

    Attributes:
        begun: How many nodes have begun.
        acted: How many have acted.
    """

    node_type = "acts"

    def __init__(self, effect: str) -> None:
        self.effect = effect
        self.begun = self.acted = 0

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        self.begun += 1
        await spend(context)
        self.acted += 1
        return ExecutionResult({"output": DataValue("text", "done")})


class Spends:
    """A node type that has reserved a call of a model from the beginning, and makes it once its gate is open."""

    node_type = "spends"

    def __init__(self) -> None:
        self.gate, self.has_spent = asyncio.Event(), asyncio.Event()

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        await spend(context, self.gate)
        self.has_spent.set()
        return ExecutionResult({"output": DataValue("text", "spent")})


async def spend(context: Any, gate: asyncio.Event | None = None) -> None:
    """Call a model."""
    reserved = await context.budget.reserve({"calls": 1})
    if gate is not None:
        await gate.wait()
    context.emit("usage", {"model": "m", "input_tokens": 1})
    reserved.release()


class Scene:
    """A run one step of which fails, and a model that has another one act in its place.

    Attributes:
        asked: The kinds of what it asked, in their order.
    """

    def __init__(self, effect: str, budget: str) -> None:
        self.acts, self.slow, self._budget = Acts(effect), Spends(), budget
        node = {"id": "act", "name": "Act", "type": "acts"}
        added = {"op": "add_node", "node": node}
        self._reply = changes({"op": "remove_node", "id": "bad"}, added)
        self.asked = list[str]()
        self._types = Fails(), self.acts, self.slow
        if budget == "enough":
            self.slow.gate.set()

    async def _written(self, request: ModelRequest) -> str:
        if self._budget != "used while it is written":
            return self._reply
        self.slow.gate.set()
        await self.slow.has_spent.wait()
        return "no JSON"  # so that the model is called once more

    def planner(self) -> Planner:
        providers, _ = open_providers(Settings(), FakeModel(self._written))
        models = open_models(Settings(), providers)
        rules = PlanRules(node_types=[each.node_type for each in self._types])
        registry = library_registry(providers, self._types)
        return Planner(models, providers, registry, Limits(), rules)

    async def run(self, *, must_approve: bool, decision: str) -> Mapping[str, Any]:
        """Run it to its end, and answer what it asks; return its document."""
        parts = dependencies(planner=self.planner(), types=self._types)
        async with in_process_client(parts) as calls:
            options = {
                "replan": {"on_failure": True, "max": 1},
                "budget": {"calls": CALLS[self._budget], "usd": 1_000},
            }
            body = {"graph": GRAPH, "options": options, "require_approval": must_approve}
            started = await calls.post_json("/api/execute", {**body, "start": True}, 202)
            path = f"/api/executions/{started['execution_id']}"
            while (record := await calls.get_json(path))["status"] not in ENDS:
                for each in record["requests"]:
                    await self._answer(
                        calls, f"{path}/requests/{each['request_id']}", each, decision
                    )
                if self.acts.begun and self._budget == "used while it waits":
                    self.slow.gate.set()
                await until(lambda: True)
            return await calls.get_json(f"{path}/document")

    async def _answer(
        self, calls: InProcessClient, path: str, asked: Mapping[str, Any], decision: str
    ) -> None:
        kind = asked["request"]["kind"]
        self.asked.append(kind)
        if kind == "plan-change":
            assert not self.acts.begun
            self.slow.gate.set()
            await self.slow.has_spent.wait()
            await calls.post_json(path, {"decision": decision})
        else:
            answers = {"plan-approval": "approve", "budget": "stop"}
            await calls.post_json(path, {"decision": answers[kind]})


EFFECTS = ("none", "write", "once")
APPROVED = [(*each, "approve") for each in product((False, True), EFFECTS, CALLS)]
REJECTED = [
    (must_approve, effect, "used while it waits", "reject")
    for must_approve, effect in product((False, True), EFFECTS)
    if must_approve or effect != "none"
]


@pytest.mark.parametrize(("must_approve", "effect", "budget", "decision"), [*APPROVED, *REJECTED])
async def test_nothing_acts_unapproved_or_over_the_budget_and_the_run_ends_or_asks(
    must_approve: bool, effect: str, budget: str, decision: str
) -> None:
    scene = Scene(effect, budget)
    document = await scene.run(must_approve=must_approve, decision=decision)
    is_written = budget != "used while it is written"
    asks = is_written and (must_approve or effect != "none")
    is_made = is_written and decision == "approve"
    is_over = is_made and budget == "used while it waits"
    asked = {"plan-approval": must_approve, "plan-change": asks, "budget": is_over}
    assert scene.asked == [kind for kind, is_asked in asked.items() if is_asked]
    assert scene.acts.begun == is_made
    assert scene.acts.acted == (is_made and not is_over)
    assert document["usage"]["calls"] <= CALLS[budget]
    refused = [each["error"]["code"] for each in document.get("refused_changes", ())]
    assert refused == ([] if is_made else ["change-rejected" if is_written else "budget-used"])
    assert document["status"] == ("cancelled" if is_over else "completed" if is_made else "failed")
