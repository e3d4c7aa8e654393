"""Flows of magic_agents rebuilt as planwave documents: what the cases with requests and agent runs need."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from planwave.providers.protocols import ModelRequest
from tests.support.conformance.converters import ConvertedGraph, Json, make_edge, make_node

SERVICE = "search.test"
"""The host of all requests of a rebuilt flow."""
_INTO = {
    ("llm", "handle_user_message"): "input",
    ("llm", "handle-system-context"): "system",
    ("llm", "handle-client-provider"): "model",
    ("fetch", "handle_fetch_input"): "input",
    ("loop", "handle_list"): "input",
}
"""The handles of targets by type; those of parsers are names of their own, all others are ``input``."""


def from_magic_agents(flow: Json, message: str) -> ConvertedGraph:
    """Rebuild a flow: what lies between a loop's item and its feedback is the body of the loop.

    The person's message is data of the first node; a body has no wires from outside, so that a message
    that is read there is written into it.
    """
    return ConvertedGraph(_MagicConverter(flow, message).document())


def echo(request: ModelRequest, _: int) -> str:
    """Answer as the model of the cases; where JSON is asked for, with a query."""
    if request.system and "JSON" in request.system:
        return json.dumps({"query": "entropy"})
    user = request.prompt
    if user.startswith("["):  # lists are compact JSON here
        user = json.dumps(json.loads(user))
    return f"ECHO(sys={request.system!r},user={user!r})"


class _MagicConverter:
    def __init__(self, flow: Json, message: str) -> None:
        self.message = message
        self.nodes = {node["id"]: node for node in flow["nodes"]}
        self.edges: list[Json] = flow["edges"]
        self.bodies = {
            node: self._body_of(node) for node, each in self.nodes.items() if each["type"] == "loop"
        }

    def document(self) -> Json:
        inside = {node for body in self.bodies.values() for node in body}
        return self._graph([node for node in self.nodes if node not in inside])

    def _body_of(self, loop: str) -> list[str]:
        """Return the nodes from the item of a loop on, up to what leads back to it."""
        found: list[str] = []
        ahead = [e["target"] for e in self._leaving(loop) if e["sourceHandle"] == "handle_item"]
        while ahead:
            node = ahead.pop()
            if node != loop and node not in found:
                found.append(node)
                ahead += [edge["target"] for edge in self._leaving(node)]
        return found

    def _leaving(self, node: str) -> Iterable[Json]:
        return (edge for edge in self.edges if edge["source"] == node)

    def _graph(self, names: list[str]) -> Json:
        edges = [
            self._edge(edge)
            for edge in self.edges
            if edge["source"] in names and edge["target"] in names
        ]
        return {"nodes": [self._node(name) for name in names], "edges": edges}

    def _edge(self, edge: Json) -> Json:
        source, target = edge["source"], edge["target"]
        left = {"user_input": "message"}.get(self._type(source), "output")
        kind, handle = self._type(target), edge["targetHandle"]
        into = handle if kind == "parser" else _INTO.get((kind, handle), "input")
        more = {"channel": "link"} if self._type(source) == "client" else {}
        return make_edge(source, target, left, into, **more)

    def _type(self, node: str) -> str:
        kind: str = self.nodes[node]["type"]
        return kind

    def _node(self, name: str) -> Json:
        data: Json = self.nodes[name].get("data") or {}
        match self._type(name):
            case "user_input":
                return make_node(name, "user_input", data={"message": self.message})
            case "text" | "end" as kind:
                return make_node(
                    name, kind, data={key: data[key] for key in ("text",) if key in data}
                )
            case "client":
                given = {"provider": data["engine"], "model": data["model"]}
                return make_node(name, "model", data=given)
            case "parser":
                return make_node(name, "parser", data={"template": _to_template(data["text"])})
            case "llm":
                return make_node(name, "llm", data=self._call(name, data))
            case "fetch":
                return make_node(name, "fetch", data=self._request(name, data))
            case "send_message":
                return make_node(name, "send_message")
            case "loop":
                return make_node(name, "loop", data={"body": self._graph(self.bodies[name])})
            case kind:
                raise KeyError(kind)

    def _call(self, name: str, data: Json) -> Json:
        given: Json = {"temperature": data["temperature"], "maxTokens": data["max_tokens"]}
        given["jsonOutput"] = data.get("json_output", False)
        if name not in self._inside():
            return given
        # A body has no links from outside either: the model is named in it.
        for edge in (edge for edge in self.edges if edge["target"] == name):
            client: Json = self.nodes[edge["source"]].get("data") or {}
            match self._type(edge["source"]), edge["targetHandle"]:
                case "client", _:
                    given |= {"provider": client["engine"], "model": client["model"]}
                case "loop", _:
                    given["prompt"] = "{{ item }}"
                case "user_input", "handle-system-context":
                    given["system"] = self.message
        return given

    def _request(self, name: str, data: Json) -> Json:
        value = "{{ item }}" if name in self._inside() else "{{ input }}"
        asked = {**data["json_data"], "q": value}
        url = re.sub(r"^https://[^/]+", f"https://{SERVICE}", data["url"])
        return {"url": url, "method": data["method"], "headers": data["headers"], "json": asked}

    def _inside(self) -> set[str]:
        return {node for body in self.bodies.values() for node in body}


def _to_template(text: str) -> str:
    """Say a template whose missing values are empty; a missing list is named as one here."""
    return re.sub(r"(handle_parser_input\.organic)", r"(\1 | default([]))", text)


def outputs_of(nodes: Mapping[str, Any]) -> Json:
    """Return what each node gave, by its name; of a node in a loop, what it gave last."""
    found: Json = {}
    for path, node in nodes.items():
        outputs = node.outputs or {}
        given = outputs.get("message") or outputs.get("output")
        if given is not None:
            found[path.rpartition("/")[2]] = given["value"]
    return found
