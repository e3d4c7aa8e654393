"""The dependencies of a service over memory, with a scripted planner."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

from planwave.errors import InputError
from planwave.graph.model import Graph
from planwave.graph.plan import Plan
from planwave.nodes.registry import Registry
from planwave.planner.progress import PlanProgress
from planwave.prompts.render import PlanExample
from planwave.service.dependencies import ServiceDependencies
from planwave.service.service import Service
from planwave.storage.records import ExecutionRecord
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.graph.builders import make_graph, make_plan, text_node
from tests.support.llm.fake_providers import DEFAULT_LIMITS, FakeProviders, library_registry


@dataclass
class FixedPlanner:
    """A planner that gives what a test made, and tells what a test says."""

    plan: Plan
    progress: Sequence[PlanProgress] = ()
    goals: list[str] = field(default_factory=list)

    async def create_plan(
        self,
        prompt: str,
        provider: str | None = None,
        model: str | None = None,
        *,
        on_progress: Callable[[PlanProgress], None] | None = None,
        answers: Mapping[str, str] | None = None,
        examples: Sequence[PlanExample] = (),
    ) -> Plan:
        self.goals.append(prompt)
        for each in self.progress:
            if on_progress is not None:
                on_progress(each)
        return replace(self.plan, user_prompt=prompt)

    async def revise(self, *_: object, **__: object) -> NoReturn:
        """Find nothing that could be changed."""
        raise InputError("nothing can be changed here", code="nothing-changed")


class LastingStore(MemoryStore):
    """A store that outlives its service, as one on disk does."""

    async def close(self) -> None:
        return


def dependencies(
    graph: Graph | None = None,
    *,
    directory: Path | None = None,
    types: Sequence[Any] = (),
    store: Any = None,
    **more: Any,
) -> ServiceDependencies:
    """Make the parts of a service; ``types`` come on top of the node library."""
    catalogue: Registry = library_registry(types=types)
    return ServiceDependencies(
        store=store or MemoryStore(),
        catalogue=catalogue,
        providers=FakeProviders(),
        planner=more.pop("planner", None)
        or FixedPlanner(make_plan(graph or make_graph(text_node("a")))),
        limits=more.pop("limits", DEFAULT_LIMITS),
        directory=directory,
        **more,
    )


async def execute_goal(service: Service, goal: str = "do it", **more: Any) -> ExecutionRecord:
    """Plan a goal and start the execution of its plan."""
    plan = await service.plans.create(goal)
    return await service.executions.execute(plan.plan_id, **more)
