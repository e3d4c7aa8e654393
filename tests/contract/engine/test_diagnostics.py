"""All errors of a document are reported together, at every boundary, and nothing else is.

Two properties over random documents. Errors of reading and errors of the
graph are reported by one call, and fixing them leaves none. And an unreadable part of a
document causes no finding about the rest that the readable document does not have.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import planwave
from planwave.cli.app import app
from planwave.errors import GraphInvalid
from planwave.graph.checking.checker import read_and_check
from planwave.graph.diagnostics import Diagnostic, errors_in
from planwave.graph.model import Graph, Node, Port
from planwave.graph.protocols import NodeTypes
from planwave.graph.reading.documents import read_lenient
from planwave.planner.graph_builder import ModelDefaults
from planwave.planner.reply_parser import ParseContext, read_reply
from planwave.service.plans.documents import check_source
from planwave.settings import Limits
from tests.support.cli.fake_factories import fake_factories
from tests.support.graph.fake_node_types import NODE_TYPES, FakeNodeTypes
from tests.support.llm.fake_providers import FakeProviders, library_registry

FLOW, LINK = {"channel": "flow"}, {"channel": "link"}
CONTINUE = {"onError": "continue"}


def node(node_id: str, kind: str = "step", **fields: Any) -> dict[str, Any]:
    return {"id": node_id, "type": kind, **fields}


def edge(source: str, target: str, **fields: Any) -> dict[str, Any]:
    ends = [end.partition(".") for end in (source, target)]
    entry: dict[str, Any] = {"source": ends[0][0], "target": ends[1][0], "data": FLOW}
    for name, (_, _, handle) in zip(("sourceHandle", "targetHandle"), ends, strict=True):
        if handle:
            entry[name] = handle
    return {name: value for name, value in {**entry, **fields}.items() if value != "left out"}


class Part(NamedTuple):
    """A part of a graph with one error, and the same part without it."""

    code: str
    nodes: Sequence[Any]
    edges: Sequence[Any]
    mended_nodes: Sequence[Any] | None = None
    mended_edges: Sequence[Any] | None = None


def unreadable(i: int) -> list[Part]:
    """Return parts with one error of reading each; ``i`` makes their ids distinct."""
    p, q, r = f"p{i}", f"q{i}", f"r{i}"
    two, wire = [node(p), node(q)], [edge(p, q)]
    return [
        Part("missing-channel", two, [edge(p, q, data={})], None, wire),
        Part("missing-channel", two, [edge(p, q, data="left out")], None, wire),
        Part("unknown-channel", two, [edge(p, q, data={"channel": "Flow"})], None, wire),
        Part("unknown-field", two, [edge(p, q, label="x")], None, wire),
        Part("unknown-field", [node(p), node(q, label="Q")], wire, two),
        Part("unknown-field", [node(p, "strict", values={"need": 1})], [],
             [node(p, "strict", data={"need": 1})]),
        Part("unknown-field", [node(p, policy={"on_error": "continue"}), node(q)],
             [edge(f"{p}.error", q)], [node(p, policy=CONTINUE), node(q)]),
        Part("unknown-field", [node(p, "fork"), node(q)], [edge(p, q, source_handle="else")],
             None, [edge(f"{p}.else", q)]),
        Part("invalid-field", [node(p), node(q, data=[])], wire, two),
        Part("invalid-field", [node(p), node(q, policy=1)], wire, two),
        Part("invalid-field", [node(p, "fork"), node(q)], [edge(p, q, sourceHandle=0)],
             None, [edge(f"{p}.else", q)]),
        Part("invalid-id", [node(p), node(f"{q} {q}"), node(r, "strict")],
             [edge(p, f"{q} {q}"), edge(f"{q} {q}", f"{r}.need")],
             [node(p), node(q), node(r, "strict")], [edge(p, q), edge(q, f"{r}.need")]),
        Part("missing-field", [{"type": "step"}, node(r, "strict")], [edge(q, f"{r}.need")],
             [node(q), node(r, "strict")]),
        Part("missing-field", [node(p), {"id": q}], [edge(f"{q}.way-0", p)],
             [node(p), node(q, "fork")]),
        Part("duplicate-id", [node(p), node(p), node(r, "strict")], [edge(p, q), edge(q, f"{r}.need")],
             [node(p), node(q), node(r, "strict")]),
        Part("not-json-value", [node(p, data={"a": {1}, "b": 2})], [], [node(p)]),
    ]  # fmt: skip


def unfitting(i: int) -> list[Part]:
    """Return readable parts with one error of the graph each."""
    p, q, r = f"p{i}", f"q{i}", f"r{i}"
    two, three = [node(p), node(q)], [node(p), node(q), node(r)]
    gears = [node(p, "gear"), node(q, "gear")]
    wire = [edge(p, q)]
    return [
        Part("flow-cycle", two, [*wire, edge(q, p)], None, wire),
        Part("link-cycle", gears,
             [edge(f"{p}.gear", f"{q}.gears", data=LINK), edge(f"{q}.gear", f"{p}.gears", data=LINK)],
             None, []),
        Part("dangling-edge", two, [*wire, edge(q, r)], None, wire),
        Part("unknown-node-type", [node(p), node(q, "nope")], wire, two),
        Part("unknown-handle", two, [edge(f"{p}.nope", q)], None, wire),
        Part("channel-mismatch", two, [edge(p, q, data=LINK)], None, wire),
        Part("type-mismatch", [node(p, "words"), node(q, "strict")], [edge(p, f"{q}.need")],
             [node(p, "number"), node(q, "strict")]),
        Part("too-many-inputs", three, [edge(p, f"{r}.only"), edge(q, f"{r}.only")],
             None, [edge(p, f"{r}.only"), edge(q, r)]),
        Part("missing-required-input", [node(p), node(q, "strict")], [],
             [node(p), node(q, "strict", data={"need": 1})]),
        Part("error-unhandled", [node(p, policy=CONTINUE), node(q)], wire, two),
        Part("own-code", [node(p, data={"odd": 1})], [], [node(p)]),
    ]  # fmt: skip


class Saying(FakeNodeTypes):
    """A catalogue whose types find something in their data."""

    def check(self, node: Node, graph: Graph) -> Iterable[Diagnostic]:
        if "odd" in node.data:
            yield Diagnostic("own-code", "error", "odd", "/data/odd")


READABLE = {part.code for part in unfitting(0)}


def document(parts: Iterable[Part], mended: Callable[[Part], bool], turn: int) -> Any:
    """Join parts with a valid one; ``turn`` rotates the lists."""
    nodes: list[Any] = [node("z0"), node("z1")]
    edges: list[Any] = [edge("z0", "z1")]
    for part in parts:
        chosen = part.nodes if part.mended_nodes is None or not mended(part) else part.mended_nodes
        nodes += chosen
        edges += part.edges if part.mended_edges is None or not mended(part) else part.mended_edges
    at, by = turn % len(nodes), turn % len(edges)
    return {"nodes": [*nodes[at:], *nodes[:at]], "edges": [*edges[by:], *edges[:by]]}


def error_codes(found: Iterable[Diagnostic]) -> set[str]:
    return {finding.code for finding in errors_in(found)}


@given(st.data(), st.integers(0, 1000))
def test_errors_of_reading_and_of_the_graph_are_reported_together_and_none_remains_once_fixed(
    data: st.DataObject, turn: int
) -> None:
    families = data.draw(st.lists(st.sampled_from([unreadable, unfitting]), min_size=2, max_size=6))
    parts = [data.draw(st.sampled_from(family(i))) for i, family in enumerate(families)]
    codes = {part.code for part in parts}

    graph, found = read_and_check(document(parts, lambda _: False, turn), Saying())
    told = error_codes(found)
    assert codes - {"dangling-edge"} <= told <= codes  # an end may mean a node with a doubtful id
    assert (graph is None) == bool(codes - READABLE)

    graph, found = read_and_check(
        document(parts, lambda part: part.code not in READABLE, turn), Saying()
    )
    assert (error_codes(found), graph is None) == (codes & READABLE, False)

    _, found = read_and_check(document(parts, lambda _: True, turn), Saying())
    assert error_codes(found) == set()


IDS = "abcde"
TEXTS = (
    "plain", "{{ input }}", "{{ foo }}", "{{ nodes['a'].output }}", "{{ nodes['b'].error }}",
    "{{ inputs.x }}", "{{ nodes['ghost'].output }}",
)  # fmt: skip


def of_made_up_types(random: Random) -> dict[str, Any]:
    """Return any readable document over the types of the fake catalogue."""
    policies = [None, None, None, {"join": "any"}, CONTINUE]
    nodes = [
        node(one, random.choice([*NODE_TYPES, "nope"]), policy=random.choice(policies))
        for one in random.sample(IDS, random.randint(1, 5))
    ]
    return {"nodes": nodes, "edges": edges_of(random, nodes, FakeNodeTypes())}


def of_the_library(random: Random) -> dict[str, Any]:
    """Return any readable document over the node library."""
    texts: dict[str, str] = {
        "text": "text", "llm": "prompt", "agent": "userPrompt", "parser": "template",
        "approval": "prompt",
    }  # fmt: skip
    nodes: list[Any] = []
    for one in random.sample(IDS, random.randint(1, 5)):
        kind = random.choice([*texts, "start", "end", "if"])
        entry = node(
            one, kind, data={}, policy=random.choice([None, None, {"join": "any"}, CONTINUE])
        )
        if kind in texts and random.random() < 0.7:
            entry["data"][texts[kind]] = random.choice(TEXTS)
        if kind == "agent" and random.random() < 0.5:
            entry["description"] = "do it"
        if kind in ("llm", "agent") and random.random() < 0.3:
            entry["data"]["provider"] = random.choice(["openai", "off", "nobody"])
        nodes.append(entry)
    return {"nodes": nodes, "edges": edges_of(random, nodes, LIBRARY)}


LIBRARY = library_registry()


def edges_of(random: Random, nodes: list[Any], catalogue: NodeTypes) -> list[Any]:
    """Return edges between compatible ports; some dangle, and some leave through the error handle."""
    edges: list[Any] = []
    for _ in range(random.randint(0, 8)):
        source, target = random.choice(nodes), random.choice(nodes)
        out, into = (catalogue.type_info(end["type"]) for end in (source, target))
        pairs = [
            (one, other)
            for one in (out.outputs if out else (Port("output"),))
            for other in (into.inputs if into else (Port("input"),))
            if one.channel == other.channel and catalogue.accepts(other.type, one.type)
        ]
        for one, other in random.sample(pairs, min(1, len(pairs))):
            handle = "error" if one.channel == "flow" and random.random() < 0.1 else one.name
            entry = {
                "source": source["id"],
                "target": "ghost" if random.random() < 0.1 else target["id"],
                "sourceHandle": handle.replace("{i}", random.choice("01")).replace(
                    "{action}", random.choice(["approve", "reject", "other"])
                ),
                "targetHandle": other.name.replace("{name}", "any"),
                "data": {"channel": one.channel},
            }
            edges += [entry] if entry not in edges else []
    return edges


def renamed(entry: dict[str, Any], old: str, new: str) -> None:
    if entry.get(old) is not None:
        entry[new] = entry.pop(old)


SPOILT_EDGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no channel": lambda e: e.update(data={}),
    "no data": lambda e: e.pop("data"),
    "odd channel": lambda e: e.update(data={"channel": "wire"}),
    "channel beside the data": lambda e: e.update(channel=e.pop("data")["channel"]),
    "no source": lambda e: e.pop("source"),
    "no target": lambda e: e.pop("target"),
    "odd target": lambda e: e.update(target=5),
    "odd field": lambda e: e.update(label="x"),
    "misnamed output": lambda e: renamed(e, "sourceHandle", "source_handle"),
    "misnamed input": lambda e: renamed(e, "targetHandle", "target_handle"),
    "odd output": lambda e: e.update(sourceHandle=""),
    "odd input": lambda e: e.update(targetHandle=4),
    "odd id": lambda e: e.update(id="not an id"),
}
SPOILT_NODES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no id": lambda n: n.pop("id"),
    "odd id": lambda n: n.update(id=n["id"] + " !"),
    "long id": lambda n: n.update(id=n["id"] * 300),
    "no type": lambda n: n.pop("type"),
    "odd type": lambda n: n.update(type=3),
    "odd field": lambda n: n.update(label="x"),
    "misnamed data": lambda n: renamed(n, "data", "config"),
    "misnamed description": lambda n: renamed(n, "description", "task"),
    "misnamed policy": lambda n: renamed(n, "policy", "polcy"),
    "odd data": lambda n: n.update(data=[1]),
    "unsound data": lambda n: n.update(data={name: {1} for name in n.get("data") or ("a",)}),
    "odd policy": lambda n: n.update(policy=7),
    "odd name": lambda n: n.update(name=0),
}


def spoil(spoilt: dict[str, Any], random: Random) -> None:
    """Make one entry of a document unreadable, or part of it."""
    name = random.choice(["nodes", "edges"] if spoilt["edges"] else ["nodes"])
    spoilers = SPOILT_NODES if name == "nodes" else SPOILT_EDGES
    number = random.randrange(len(spoilt[name]))
    match random.choice([*spoilers, "no object", "taken id"]):
        case "no object":
            spoilt[name][number] = None
        case "taken id":
            spoilt[name][number]["id"] = random.choice(spoilt[name]).get("id")
        case how:
            spoilers[how](spoilt[name][number])


def places_of(found: Iterable[Diagnostic]) -> set[tuple[str, str]]:
    """Return code and pointer of findings; cycles and too many inputs have no stable pointer."""
    return {
        (d.code, "" if d.path else str(d.node)[0] if d.code == "too-many-inputs" else d.pointer)
        for d in found
    }


@given(
    st.sampled_from([(of_made_up_types, FakeNodeTypes()), (of_the_library, LIBRARY)]),
    st.randoms(use_true_random=False),
)
def test_an_unreadable_part_causes_no_finding_about_the_rest_of_the_document(
    entry: tuple[Callable[[Random], dict[str, Any]], Any], random: Random
) -> None:
    make, catalogue = entry
    whole = make(random)
    graph, expected = read_and_check(whole, catalogue)
    assert graph is not None
    spoilt = deepcopy(whole)
    spoil(spoilt, random)
    _, found = read_and_check(spoilt, catalogue)
    unexpected = places_of(found) - places_of(read_lenient(spoilt).findings)
    if any(finding.path for finding in expected):
        unexpected -= {
            place for place in unexpected if place[0] == "unreachable-node"
        }  # cycles hide these
    assert unexpected <= places_of(expected)


BOTH = {
    "nodes": [node(one, "text", data={"text": "x"}) for one in "abc"],
    "edges": [edge("a", "b"), edge("b", "a"), edge("b", "c", data={})],
}
CODES = ["flow-cycle", "missing-channel"]


def built() -> list[Diagnostic]:
    with pytest.raises(GraphInvalid) as caught:
        planwave.build(BOTH)
    return list(caught.value.diagnostics)


def planned() -> list[Diagnostic]:
    reader = ParseContext(
        library_registry(), FakeProviders(), ModelDefaults("openai", "gpt"), Limits()
    )
    return list(read_reply(json.dumps({"title": "T", **BOTH}), reader).diagnostics)


@pytest.mark.parametrize(
    "boundary",
    [
        built,
        planned,
        lambda: check_source(json.dumps(BOTH), library_registry(), Limits()).diagnostics,
        lambda: (
            check_source(
                json.dumps({"title": "T", **BOTH}), library_registry(), Limits()
            ).diagnostics
        ),
    ],
)
def test_every_boundary_reports_errors_of_reading_and_of_the_graph_together(
    boundary: Callable[[], Sequence[Diagnostic]],
) -> None:
    assert [finding.code for finding in errors_in(boundary())] == CODES


@pytest.mark.parametrize("command", ["check", "exec"])
def test_the_command_line_reports_errors_of_reading_and_of_the_graph_together(command: str) -> None:
    done = CliRunner().invoke(
        app, [command, "-", "--json"], input=json.dumps(BOTH), obj=fake_factories()
    )
    assert done.exit_code == 3
    assert [found["code"] for found in json.loads(done.stdout)["diagnostics"]] == CODES
