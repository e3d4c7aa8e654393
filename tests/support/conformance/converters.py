"""Graphs of other engines rebuilt as planwave documents: small converters, for tests only.

Each gives what can be run here. The terms of the other engine (legacy names of types
and handles, its expressions, how it reads a message out of an object) are translated to ours; nothing is
left out silently, an unknown type or expression raises ``KeyError``.
"""

from __future__ import annotations

import re
from typing import Any

from planwave.executor.options import RunOptions
from tests.support.conformance.converted_runs import ConvertedGraph

Json = dict[str, Any]


def make_node(node_id: str, kind: str, name: str = "", **more: Any) -> Json:
    """Give a node of a document."""
    return {"id": node_id, "type": kind, "name": name or node_id, **more}


def make_edge(
    source: str, target: str, left: str = "output", into: str = "input", **data: Any
) -> Json:
    """Give an edge of a document, by default of the flow."""
    channel = data.pop("channel", "flow")
    ends = {"source": source, "sourceHandle": left, "target": target, "targetHandle": into}
    return {**ends, "data": {"channel": channel, **data}}


# -- Covalt: nodes and edges with channels ---------------------------------------------------------

_EXPRESSIONS = {
    "$input.message": "input.message",
    "$input.message.toUpperCase()": "input.message | upper",
    "$('a').item.json.response.length": 'nodes["a"].output | length',
    "$('a').item.json.response": 'nodes["a"].output',
    "$('First').item.json.response": 'nodes["a"].output',
    "$input.text": "input",
    "$trigger.message": "trigger.message",
}
"""The expressions of the cases (JavaScript there) as planwave says them: results are plain text here,
labels are not names."""
_PASSES_ON = ("conditional", "reroute")


def from_covalt(graph: Json, options: Json, user_message: str) -> ConvertedGraph:
    """Rebuild a graph: it begins with a message of a chat, and what agents give is text."""
    rebuilt = _CovaltConverter(graph, user_message).document()
    scope, cached = options.get("scope") or {}, options.get("cached_outputs") or {}
    way = {"execute": "run_to", "runFrom": "run_from"}.get(scope.get("mode"))
    return ConvertedGraph(
        rebuilt,
        RunOptions(**({way: tuple(scope["target_node_ids"])} if way else {})),
        {node: {h: _text_in(v["value"]) for h, v in out.items()} for node, out in cached.items()},
        options.get("trigger"),
    )


def _text_in(value: Any) -> Any:
    return value["response"] if isinstance(value, dict) else value


class _CovaltConverter:
    def __init__(self, graph: Json, user_message: str) -> None:
        self.graph = graph
        self.types = {n["id"]: n["type"].replace("_", "-") for n in graph["nodes"]}
        self.message = user_message
        self.nodes: list[Json] = []
        self.edges: list[Json] = []

    def document(self) -> Json:
        for edge in self.graph["edges"]:
            self.edges.append(self._edge(edge))
        for node in self.graph["nodes"]:
            rebuilt = self._node(node["id"], self.types[node["id"]], node["data"])
            if node["data"].get("on_error") == "continue":
                rebuilt["policy"] = {"onError": "continue"}
                outgoing = [e for e in self.edges if e["source"] == node["id"]]
                self.edges += [make_edge(node["id"], e["target"], "error") for e in outgoing]
            self.nodes.append(rebuilt)
        return {"nodes": self.nodes, "edges": self.edges}

    def _edge(self, edge: Json) -> Json:
        source, target = edge["source"], edge["target"]
        left = edge["sourceHandle"]
        if self.types[source] == "conditional":
            left = {"true": "condition-0"}.get(left, left)
        if self.types[source] == "model-selector":
            return make_edge(source, target, left, edge["targetHandle"], channel="link")
        if edge["targetHandle"] == "tools":
            left = {"agent": "tools-out"}.get(self.types[source], left)
            return make_edge(source, target, left, "tools", channel="link")
        types = {k: _TYPES[v] for k, v in edge["data"].items() if k != "channel"}
        return make_edge(source, target, left, edge["targetHandle"], **types)

    def _node(self, node_id: str, kind: str, data: Json) -> Json:
        match kind:
            case "chat-start":
                return make_node(node_id, "chat_start", data={"message": self.message})
            case "agent":
                return self._agent(node_id, data)
            case "llm-completion":
                return make_node(node_id, "llm", data=self._completion(node_id, data))
            case "prompt-template":
                return make_node(node_id, "parser", data={"template": _prompt_template(data)})
            case "conditional":
                return make_node(node_id, "if", data={"conditions": [data]})
            case "reroute":
                return make_node(node_id, "text", data={"text": data["value"]})
            case "model-selector":
                return make_node(node_id, "model", data=_provider_and_model(data["model"]))
            case "code":
                return make_node(node_id, "transform", data={"fields": _code(data["code"])})
            case "boom":
                return make_node(node_id, "boom")
            case _:
                return self._tools(node_id, kind, data)

    def _tools(self, node_id: str, kind: str, data: Json) -> Json:
        if kind != "toolset":
            raise KeyError(kind)
        return make_node(node_id, "named_tool", data={"tool": f"toolset:{data['toolset']}"})

    def _agent(self, node_id: str, data: Json) -> Json:
        """Give an agent; its name, which the rule of the cases reads, is its system prompt.

        A name that is an expression is a text of its own, wired into that field.
        """
        name = data.get("name", "Agent")
        asked: Json = {"userPrompt": self._message_for(node_id), "systemPrompt": name}
        if "{{" in name:
            del asked["systemPrompt"]
            self.nodes.append(
                make_node(f"{node_id}.name", "text", data={"text": _to_template(name)})
            )
            for edge in [e for e in self.edges if e["target"] == node_id]:
                self.edges.append(
                    make_edge(edge["source"], f"{node_id}.name", edge["sourceHandle"])
                )
            self.edges.append(make_edge(f"{node_id}.name", node_id, into="systemPrompt"))
        return make_node(node_id, "agent", data=asked)

    def _completion(self, node_id: str, data: Json) -> Json:
        given = {"temperature": data["temperature"]} if "temperature" in data else {}
        is_fed = any(e["target"] == node_id and e["targetHandle"] == "input" for e in self.edges)
        prompt = self._message_for(node_id) if is_fed else data.get("prompt")
        return {**_provider_and_model(data["model"]), **given, "prompt": prompt}

    def _message_for(self, node_id: str) -> str:
        """Give where the message is: in an object of the start and of errors, else it is the input."""
        edge = next((e for e in self.edges if e["target"] == node_id), None)
        source = edge and edge["source"]
        if source is not None and self.types[source] in _PASSES_ON:
            return self._message_for(source)
        is_object = source is not None and self.types[source] in ("chat-start", "boom")
        return "{{ input.message }}" if is_object else "{{ input }}"


_TYPES = {"data": "any", "string": "text", "float": "number", "model": "model"}


def _provider_and_model(model: str) -> Json:
    provider, _, name = model.rpartition(":")
    return {"provider": provider, "model": name}


def _to_template(text: str) -> str:
    """Say a text with expressions in it as a planwave template."""
    return re.sub(r"\{\{\s*(.*?)\s*\}\}", lambda found: f"{{{{ {_EXPRESSIONS[found[1]]} }}}}", text)


def _prompt_template(data: Json) -> Json:
    """Give ``{text, template, values}``: bare names there are looked up in the input, or empty."""
    bare = re.compile(r"\{\{(\w+)\}\}")
    source = bare.sub(lambda found: f"{{{{ input.{found[1]} | default('') }}}}", data["template"])
    text = re.sub(r"\{\{ \$input\.(\w+) \}\}", r"{{ input.\1 }}", source)
    # What the template looked like is shown with its expressions resolved, but bare names as they are.
    pieces = re.split(r"(\{\{\w+\}\})", data["template"])
    template = "".join(f"{{{{ '{p}' }}}}" if bare.fullmatch(p) else _to_template(p) for p in pieces)
    return {"text": text, "template": template, "values": "{{ input }}"}


def _code(code: str) -> Json:
    """Give the fields of ``return {name: expression, …};``."""
    fields = re.fullmatch(r"return \{(.*)\};", code)
    assert fields is not None, code
    pairs = (each.split(": ", 1) for each in fields[1].split(", "))
    return {name: f"{{{{ {_EXPRESSIONS[expression]} }}}}" for name, expression in pairs}
