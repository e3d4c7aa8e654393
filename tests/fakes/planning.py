"""What the planner talks to, played by lists: a model that says what a test wrote, two providers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from planwave.errors import UnavailableProvider, UnknownModel, UnknownProvider
from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry
from planwave.planner.small import positional_schema
from planwave.providers.api import (
    CallScope,
    Delta,
    ModelProfile,
    ModelReply,
    ModelRequest,
    ProviderInfo,
    Usage,
)
from planwave.settings import Limits


class ScriptedReply(NamedTuple):
    """One scripted reply; ``pieces`` is how it is streamed, the whole text at once by default."""

    text: str
    finish_reason: str = "stop"
    pieces: Sequence[str] | None = None
    reasoning: str = ""
    output_tokens: int = 7


@dataclass
class ScriptedModels:
    """Satisfies ``Models``: each call takes the next reply; an exception is raised instead."""

    script: Sequence[ScriptedReply | str | Exception]
    requests: list[ModelRequest] = field(default_factory=list)
    scopes: list[CallScope | None] = field(default_factory=list)
    streamed: int = 0
    closed: int = 0

    async def stream(
        self, request: ModelRequest, scope: CallScope | None = None
    ) -> AsyncIterator[Delta | ModelReply]:
        said = self.script[len(self.requests)]
        self.requests.append(request)
        self.scopes.append(scope)
        if isinstance(said, Exception):
            raise said
        if isinstance(said, str):
            said = ScriptedReply(said)
        try:
            if said.reasoning:
                yield Delta(said.reasoning, "reasoning")
            for piece in said.pieces or [said.text]:
                self.streamed += len(piece)
                yield Delta(piece)
            yield ModelReply(
                said.text,
                request.provider,
                request.model,
                said.finish_reason,
                Usage(11, said.output_tokens, 0.01),
            )
        finally:
            self.closed += 1


class FakeProviders:
    """``openai`` takes any model at a price, ``own`` two models of unknown price, ``off`` is off.

    ``tiny`` has one model with the ``small`` profile; a model called ``capped`` has a token limit,
    one called ``toy`` cannot plan.
    """

    infos = (
        ProviderInfo("openai", "openai", True, "key", models=("gpt",), default_model="gpt"),
        ProviderInfo(
            "own", "openai-compatible", True, "", "", ("one", "two"), "one", open_models=False
        ),
        ProviderInfo("tiny", "local", True, "", "", ("t1",), "t1", open_models=False),
        ProviderInfo("off", "anthropic", False, "no key", "set OFF_KEY", ("x",), "x"),
    )

    def list(self) -> list[ProviderInfo]:
        return [*self.infos]

    def resolve(self, provider: str | None, model: str | None) -> tuple[str, str]:
        if provider is None:
            homes = [i.name for i in self.infos if i.available and model in i.models]
            provider = homes[0] if homes else "openai"
        info = next((i for i in self.infos if i.name == provider), None)
        if info is None:
            raise UnknownProvider(f"no provider {provider!r}", hint="openai, own, tiny")
        if not info.available:
            raise UnavailableProvider(f"{provider} is off: {info.reason}", hint=info.how_to_enable)
        if model is not None and not info.open_models and model not in info.models:
            raise UnknownModel(f"{provider} has no model {model!r}", hint=", ".join(info.models))
        return info.name, model or info.default_model or "?"

    def profile(self, provider: str, model: str) -> ModelProfile:
        if model == "toy":
            return ModelProfile(small=True, plans=False)
        if provider == "tiny":
            return ModelProfile(small=True, max_output_tokens=220)
        if model == "capped":
            return ModelProfile(max_output_tokens=1_000)
        return ModelProfile(structured_output=provider == "openai")

    def price(self, provider: str, model: str, usage: Usage) -> float | None:
        if provider == "own":
            return None
        return 0.001 * usage.input_tokens + 0.002 * usage.output_tokens


def library_registry(providers: FakeProviders | None = None) -> Registry:
    """Give the node library, with providers looked up at the fake."""
    return Registry(LIBRARY, providers=providers or FakeProviders(), limits=Limits())


def reply_node(node_id: str, **more: Any) -> dict[str, Any]:
    """Give a step in the reply shape."""
    return {"id": node_id, "name": node_id.title(), "description": f"Do {node_id}.", **more}


def reply_edge(source: str, target: str, **more: Any) -> dict[str, Any]:
    """Give a flow edge in the reply shape."""
    return {"source": source, "target": target, "channel": "flow", **more}


def planner_reply(*nodes: Any, edges: Sequence[Any] = (), title: str | None = "A plan", **more: Any) -> str:
    """Give a reply as text."""
    document: dict[str, Any] = {"nodes": list(nodes), "edges": list(edges), **more}
    if title is not None:
        document = {"title": title, **document}
    return json.dumps(document)


DIAMOND_REPLY = planner_reply(
    reply_node("a"),
    reply_node("b"),
    reply_node("c"),
    reply_node("d"),
    edges=[reply_edge("a", "b"), reply_edge("a", "c"), reply_edge("b", "d"), reply_edge("c", "d")],
)


def smallest_value(schema: Any, word: str = "Word") -> Any:
    """Give the smallest value that fits a JSON Schema."""
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    match schema["type"]:
        case "object":
            return {name: smallest_value(schema["properties"][name], name) for name in schema["required"]}
        case "array":
            return [smallest_value(schema["items"])] * schema.get("minItems", 0)
        case "string":
            return word
        case kind:
            raise AssertionError(f"no sample of {kind}")


def small_model_reply() -> str:
    """Give a reply that fits the positional schema, whatever that asks for now."""
    return json.dumps(smallest_value(positional_schema()))
