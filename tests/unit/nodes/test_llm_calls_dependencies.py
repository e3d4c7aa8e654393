"""What decides a model's reply decides whether a fork takes it over: each input of it, one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from planwave.executor.node_api.host import NodeHost
from planwave.executor.node_api.nested import create_graph_run
from planwave.executor.options import RunOptions
from planwave.executor.program import Program
from planwave.executor.reuse.result_key import dependencies, result_key
from planwave.executor.state import Attempt, current_attempt
from planwave.graph.model import DataValue, Graph, Node
from planwave.graph.protocols import ReusableResult
from planwave.nodes.agents.tool import Tool
from planwave.nodes.authoring.node_type import LinkType, NodeData
from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry, default_registry
from planwave.planner.planner import Planner
from planwave.prompts import render
from planwave.providers.protocols import ModelProfile
from tests.support.graph.builders import make_edge
from tests.support.llm.fake_providers import ListedProviders
from tests.support.nodes.node_context import services_with

REGISTRY = default_registry()
CALLING = [
    name
    for name in REGISTRY.names()
    if REGISTRY.spec(name).calls_model and REGISTRY.type_info(name).executes
]


async def no_call(*_: Any) -> Any:
    raise AssertionError("called")


TOOLS = [Tool("search", "Search it.", {"type": "object", "properties": {}}, no_call)]


class Tools(LinkType):
    """Gives the tools of a list that tests change."""

    node_type = "some-tools"
    purpose = "Give tools."
    given: Sequence[Tool] = TOOLS
    outputs = REGISTRY.type_info("toolset").outputs

    class Data(NodeData):
        """None."""

    async def make(self, data: Any, inputs: Any, context: Any) -> list[Tool]:
        return [*self.given]


class Scene:
    """A node of a type that calls a model, fed, linked and served as the scene says."""

    def __init__(self, node_type: str) -> None:
        self.node_type = node_type
        self.data: dict[str, Any] = {}
        self.description = "Do it."
        self.value = "what arrived"
        self.goal = "the goal"
        self.tools = Tools()
        self.default_provider: str | None = None
        self.default_model: str | None = None
        self.model_data: dict[str, Any] | None = None
        self.models = {"openai": ["m", "n"], "other": ["o"]}
        self.profiles: Mapping[str, ModelProfile] = {}
        self.allowed = [*LIBRARY, self.tools]

    async def identity(self) -> str:
        """All that has to be equal for a fork to reuse the result."""
        nodes = [
            Node("a", "text", "", data={"text": "?"}),
            Node("n", self.node_type, "", self.description, self.data),
        ]
        edges = [make_edge("a", "n", edge_id="e1")]
        if self.node_type == "agent":
            nodes.append(Node("t", "some-tools", ""))
            edges.append(link("t", "tools", "tools"))
        if self.model_data is not None:
            nodes.append(Node("model", "model", "", data=self.model_data))
            edges.append(link("model", "output", "model"))
        program = Program(Graph(tuple(nodes), tuple(edges)), Registry(self.allowed))
        providers: Any = ListedProviders(self.models, profiles=self.profiles)
        services, models = services_with(lambda _: ["reply"], providers)
        services = replace(
            services,
            planner=Planner(models, providers, program.catalogue),
            goal=self.goal,
            default_provider=self.default_provider,
            default_model=self.default_model,
        )
        host = NodeHost("x1", {"goal": self.goal}, services, None, None, None)
        graph_run = create_graph_run(program, host, RunOptions(), {})
        number = program.topology.index["n"]
        graph_run.values.outputs[program.topology.index["a"]] = {
            "output": DataValue("text", self.value)
        }
        attempt = Attempt(graph_run, number)
        current_attempt.set(attempt)
        besides = await dependencies(host, attempt)
        assert besides
        return f"{await result_key(host, graph_run.values, number)} {besides}"


def link(source: str, out: str, into: str) -> Any:
    return make_edge(
        source, "n", channel="link", source_handle=out, target_handle=into, edge_id=f"l-{source}"
    )


def tool(**changes: Any) -> Any:
    def change(scene: Scene) -> None:
        scene.tools.given = [replace(TOOLS[0], **changes)]

    return change


def setting(name: str, value: Any) -> Any:
    return lambda scene: setattr(scene, name, value)


SMALL = {"m": ModelProfile(small=True)}
CHANGES: dict[str, Any] = {
    "the description": setting("description", "Do something else."),
    "what arrived": setting("value", "something else"),
    "the default model": setting("default_model", "n"),
    "the default provider": setting("default_provider", "other"),
    "the models of the default provider": setting("models", {"openai": ["n", "m"]}),
    "the profile of the model": setting("profiles", {"m": ModelProfile(max_output_tokens=7)}),
    "a linked model": setting("model_data", {"provider": "other"}),
}
OF_AGENTS: dict[str, Any] = {
    "the goal": setting("goal", "another goal"),
    "the name of a tool": tool(name="find"),
    "the description of a tool": tool(description="Search more."),
    "the schema of a tool": tool(parameters={"type": "object", "properties": {"q": {}}}),
    "one tool more": lambda scene: setattr(
        scene.tools, "given", [*TOOLS, replace(TOOLS[0], name="more")]
    ),
    "one tool less": lambda scene: setattr(scene.tools, "given", []),
}


def test_every_type_that_calls_a_model_says_what_its_results_depend_on() -> None:
    assert {"agent", "llm", "planner"} <= set(CALLING)
    for name in CALLING:
        assert isinstance(REGISTRY.implementation(name), ReusableResult), name


@pytest.mark.parametrize("node_type", CALLING)
async def test_without_a_change_the_result_is_reused(node_type: str) -> None:
    assert await Scene(node_type).identity() == await Scene(node_type).identity()


@pytest.mark.parametrize(
    ("node_type", "change"),
    [
        *((each, change) for each in CALLING for change in CHANGES),
        *(("agent", change) for change in OF_AGENTS),
    ],
)
async def test_each_change_of_what_a_reply_depends_on_is_noticed(
    node_type: str, change: str
) -> None:
    scene = Scene(node_type)
    (CHANGES | OF_AGENTS)[change](scene)
    assert await scene.identity() != await Scene(node_type).identity()


@pytest.mark.parametrize(
    ("node_type", "field"),
    [(name, field.json_name) for name in REGISTRY.names() for field in REGISTRY.spec(name).fields],
)
async def test_each_field_of_each_type_and_each_value_that_is_wired_there_is_in_the_key(
    node_type: str, field: str
) -> None:
    keys = {await key_of(node_type, {field: value}, None) for value in (1, 2, None, "x")}
    keys |= {await key_of(node_type, {}, (field, value)) for value in (1, 2, "x")}
    assert len(keys) == 7


async def key_of(node_type: str, data: dict[str, Any], wired: tuple[str, Any] | None) -> str:
    nodes = Node("a", "text", "", data={"text": "?"}), Node("n", node_type, "", data=data)
    edges = () if wired is None else (make_edge("a", "n", target_handle=wired[0], edge_id="e"),)
    program = Program(Graph(nodes, edges), REGISTRY)
    host = NodeHost("x1", {}, None, None, None, None)
    values = create_graph_run(program, host, RunOptions(), {}).values
    if wired is not None:
        values.outputs[0] = {"output": DataValue("any", wired[1])}
    return await result_key(host, values, 1)


async def test_a_linked_model_decides_and_not_the_default_one() -> None:
    for change in ("default_model", "default_provider"):
        first, second = Scene("agent"), Scene("agent")
        first.model_data = second.model_data = {"provider": "other", "model": "o"}
        setattr(second, change, {"default_model": "n", "default_provider": "openai"}[change])
        assert await first.identity() == await second.identity()


@pytest.mark.parametrize(
    ("node_type", "template"), [("agent", "agent_prompt.j2"), ("planner", "planner_repair.j2")]
)
async def test_a_change_of_a_prompt_template_is_noticed(
    monkeypatch: pytest.MonkeyPatch, node_type: str, template: str
) -> None:
    before = await Scene(node_type).identity()
    monkeypatch.setattr(render, "_source", lambda name: render_source(name, template))
    for cached in (render.template_hash, render._templates):
        cached.cache_clear()
    try:
        assert await Scene(node_type).identity() != before
    finally:
        monkeypatch.undo()
        for cached in (render.template_hash, render._templates):
            cached.cache_clear()
    assert await Scene(node_type).identity() == before


source_of = render._source


def render_source(name: str, changed: str) -> str:
    return source_of(name) + (" And be brief." if name == changed else "")
