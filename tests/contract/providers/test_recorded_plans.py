"""Real plans that open models wrote for TaskBench requests, half of them faulty.

Each is put into the planner's reply shape as its model wrote it and read like any reply. An oracle
that knows nothing of planwave says from the data alone which ones are faulty.
"""

from __future__ import annotations

import graphlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from planwave.graph.diagnostics import Diagnostic
from planwave.graph.model import Graph, Node, Port
from planwave.graph.protocols import NodeTypeInfo
from planwave.planner.graph_builder import ModelDefaults
from planwave.planner.reply_parser import ParseContext, ParseResult, read_reply
from planwave.settings import Limits
from tests.support.llm.fake_providers import FakeProviders
from tests.support.paths import SHARED

DATA = SHARED / "data"
DATASETS = ("huggingface", "multimedia")


@dataclass
class Tools:
    """The tools of one dataset as a catalogue: each is a node type with typed sockets.

    An input takes any one of its tool's input types, written ``text|image``.
    """

    tools: dict[str, dict[str, Any]]

    def type_info(self, node_type: str) -> NodeTypeInfo | None:
        tool = self.tools.get(node_type)
        if tool is None:
            return None
        takes, gives = "|".join(tool["input-type"]), "|".join(tool["output-type"])
        inputs = (Port("input", takes, multiple=True),)
        return NodeTypeInfo(
            node_type, tool["desc"], inputs, (Port("output", gives),),
            data_fields={"arguments": "arguments"}, plan_fields=("arguments",),
        )  # fmt: skip

    def implementation(self, node_type: str) -> Any:
        raise KeyError(node_type)

    def names(self) -> Sequence[str]:
        return sorted(self.tools)

    def accepts(self, target_type: str, source_type: str) -> bool:
        return source_type in target_type.split("|")

    def check(self, node: Node, graph: Graph) -> Iterable[Diagnostic]:
        return ()


def node_id(name: Any) -> Any:
    """Give the id that stands for a tool's name; different names never share one."""
    if not isinstance(name, str):
        return name
    return re.sub(r"[^A-Za-z0-9 -]", lambda found: f".{ord(found[0]):x}.", name).replace(" ", "_")


def as_reply(record: dict[str, Any]) -> str:
    """Give a record in the reply shape; what does not belong there stays where it was written."""
    nodes: list[Any] = []
    for task in record["task_nodes"]:
        left = {k: v for k, v in task.items() if k not in ("task", "arguments", "id")}
        name = task["task"]
        data = {"arguments": task.get("arguments")}
        nodes.append({"id": node_id(name), "name": name, "type": name, "data": data, **left})
    edges: list[Any] = []
    for link in record["task_links"]:
        ends = {k: node_id(v) if k in ("source", "target") else v for k, v in link.items()}
        edges.append({**ends, "channel": "flow"})
    title = record["user_request"][:60]
    return json.dumps({"title": title, "nodes": nodes, "edges": edges})


def faults_of(record: dict[str, Any], tools: set[str], legal: set[tuple[str, str]]) -> set[str]:
    """Say what is wrong with a record, from the data alone."""
    faults: set[str] = set()
    names = [task["task"] for task in record["task_nodes"]]
    # Links name tools: where one is used twice, nobody can say which of the two is meant.
    faults |= {"ambiguous tool"} if len(set(names)) < len(names) else set()
    faults |= {"unknown tool"} if set(names) - tools else set()
    known = {"task", "arguments", "id"}
    faults |= {"stray field"} if any(set(t) - known for t in record["task_nodes"]) else set()
    before: dict[str, list[str]] = {}
    for link in record["task_links"]:
        if set(link) != {"source", "target"}:
            faults.add("stray field")
            continue
        source, target = link["source"], link["target"]
        if not {source, target} <= set(names):
            faults.add("dangling link")
        elif (source, target) not in legal:
            faults.add("illegal link")
        before.setdefault(target, []).append(source)
    try:
        graphlib.TopologicalSorter(before).prepare()
    except graphlib.CycleError:
        faults.add("cycle")
    return faults


EXPLAINS = {
    "ambiguous tool": {"duplicate-id"},
    "unknown tool": {"unknown-node-type"},
    "stray field": {"unknown-field", "missing-field"},
    "dangling link": {"dangling-edge", "invalid-field"},
    "illegal link": {"type-mismatch", "flow-cycle", "dangling-edge", "unknown-node-type"},
    "cycle": {"flow-cycle"},
}
"""Codes that may stand for a fault: a link of a tool to itself is a cycle, one to a number no text."""

UNREADABLE = {"duplicate-id", "unknown-field", "missing-field", "invalid-field"}
"""A document that cannot be read is not looked at further; these come alone."""


def unexplained(faults: set[str], found: set[str]) -> set[str]:
    """Give the faults that no code stands for, as far as the document could be read."""
    left = {fault for fault in faults if not EXPLAINS[fault] & found}
    return left if not found & UNREADABLE or left == faults else set()


def load(dataset: str) -> tuple[Tools, set[tuple[str, str]], list[dict[str, Any]]]:
    plans = DATA / f"recorded_plans_{dataset}.jsonl"
    if not plans.is_file():
        pytest.skip("no ../shared/data")
    described = json.loads((DATA / f"{dataset}_tool_desc.json").read_text("utf-8"))
    graph = json.loads((DATA / f"{dataset}_graph_desc.json").read_text("utf-8"))
    tools = Tools({tool["id"]: tool for tool in described["nodes"]})
    legal = {(link["source"], link["target"]) for link in graph["links"]}
    return tools, legal, [json.loads(line) for line in plans.read_text("utf-8").splitlines()]


def codes_of(reading: ParseResult) -> set[str]:
    return {d.code for d in reading.diagnostics if d.severity == "error"}


@pytest.mark.parametrize("dataset", DATASETS)
def test_recorded_plans_are_accepted_or_rejected_correctly(dataset: str) -> None:
    tools, legal, records = load(dataset)
    reader = ParseContext(tools, FakeProviders(), ModelDefaults("openai", "gpt"), Limits())
    counts: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    accepted_though_faulty: list[str] = []
    refused_though_legal: list[str] = []
    unmet: list[tuple[str, set[str]]] = []
    for record in records:
        faults = faults_of(record, set(tools.tools), legal)
        reading = read_reply(as_reply(record), reader)
        found = codes_of(reading)
        counts.update(faults)
        codes.update(found)
        if reading.graph is None:
            counts["refused"] += 1
            if not faults:
                refused_though_legal.append(record["id"])
            unmet += [(record["id"], left)] if (left := unexplained(faults, found)) else []
        else:
            counts["fixed" if reading.fixes else "legal"] += 1
            accepted_though_faulty += [record["id"]] if faults else []
            assert len(reading.graph.nodes) == len(record["task_nodes"]), "never a smaller plan"
    print(f"\n{dataset}: {len(records)} plans {dict(counts)}\n  codes {dict(codes)}")  # noqa: T201
    assert accepted_though_faulty == []
    assert refused_though_legal == []
    assert unmet == []
    assert counts["refused"] > 100
    assert counts["legal"] > 100
