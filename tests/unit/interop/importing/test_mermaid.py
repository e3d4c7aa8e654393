"""Flowcharts of Mermaid: read by a parser of their own, plans where they are plans, and the same when drawn again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import planwave
from planwave.errors import InputError
from planwave.graph.json_values import pointer_part
from planwave.graph.reading.documents import read_graph
from planwave.interop.exporting.drawing import draw
from planwave.interop.exporting.mermaid import mermaid
from planwave.interop.importing.importer import Imported, import_text
from planwave.interop.importing.mermaid.syntax import Chart, plain_text, read_chart
from planwave.testing import FakeModel, use_model
from tests.support.interop.damage import ODD_TEXTS
from tests.support.interop.imports import OWN, assert_accounted_for, findings_of, outcomes
from tests.support.llm.fake_providers import library_registry

_FILES = OWN / "mermaid"


def _pointers(chart: Chart) -> dict[str, list[str]]:
    nodes = [f"/nodes/{pointer_part(key)}" for key in chart.vertices]
    lines = [statement.line for statement in chart.unreadable]
    for place, line in enumerate(lines):
        count = lines[:place].count(line)
        nodes.append(f"/lines/{line}" + (f"/{count + 1}" if count else ""))
    return {"nodes": nodes, "edges": [f"/edges/{i}" for i in range(len(chart.links))]}


def _imported(text: str) -> Imported:
    imported = import_text(text, "mermaid")
    assert_accounted_for(imported, **_pointers(read_chart(text)))
    return imported


def _types(imported: Imported) -> dict[str, str]:
    return {node["id"]: node["type"] for node in imported.document["nodes"]}


def _edges(imported: Imported) -> list[tuple[str, str, str]]:
    return [(e["source"], e["sourceHandle"], e["target"]) for e in imported.document["edges"]]


# -- the files of this project ---------------------------------------------------------------------


def test_a_chart_of_boxes_becomes_agents_between_a_start_and_an_end() -> None:
    text = (_FILES / "research.mmd").read_text("utf-8")
    assert import_text(text).report["kind"] == "mermaid"
    imported = _imported(text)
    assert imported.document["title"] == "Market note"
    assert _types(imported) == {
        "goal": "start", "facts": "agent", "risks": "agent", "note": "agent", "done": "end"
    }  # fmt: skip
    assert _edges(imported) == [
        ("goal", "output", "facts"), ("goal", "output", "risks"), ("facts", "output", "note"),
        ("risks", "output", "note"), ("note", "output", "done"),
    ]  # fmt: skip
    described = {n["id"]: n.get("description") for n in imported.document["nodes"]}
    assert described["risks"] == "Find the risks (at most two)"
    assert not findings_of(imported)
    assert set(outcomes(imported).values()) == {"mapped"}


def test_a_decision_asks_a_model_and_an_approval_a_person() -> None:
    text = (_FILES / "decision.mmd").read_text("utf-8")
    chart = read_chart(text)
    assert (len(chart.vertices), len(chart.links)) == (7, 7)
    imported = _imported(text)
    assert outcomes(imported)["Is it a complaint?"] == "changed"
    types = _types(imported)
    assert (types["B.ask"], types["B"], types["E"], types["C2"]) == (
        "llm",
        "switch",
        "approval",
        "agent",
    )
    edges = _edges(imported)
    assert {
        ("B", "case-0", "C"),
        ("B", "case-1", "D"),
        ("E", "approve", "F"),
        ("E", "reject", "C2"),
    } <= {*edges}
    assert [note["pointer"] for note in imported.report["notes"]] == ["/lines/9", "/lines/10"]
    assert not findings_of(imported)


def test_another_diagram_is_refused() -> None:
    with pytest.raises(InputError, match="a Mermaid sequenceDiagram is no plan"):
        import_text((_FILES / "not_a_flowchart.mmd").read_text("utf-8"))


# -- syntax ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "label"),
    [
        ("-->", ""), ("---->", ""), ("--->|go on|", "go on"), ("-- go on -->", "go on"), ("--go on-->", "go on"),
        ("-.->", ""), ("-. go on .->", "go on"), ("-..->|go on|", "go on"), ("==>", ""), ("== go on ==>", "go on"),
        ("==>|go on|", "go on"), ("--x", ""), ("--o", ""), ('-- "go -- on" -->', "go -- on"),
        ('-->|"a [b] {c}"|', "a [b] {c}"), ("-->|a #quot;b#quot; #35;|", 'a "b" #'),
    ],
)  # fmt: skip
@pytest.mark.parametrize("space", [" ", ""])
def test_every_line_leads_from_one_step_to_the_next(line: str, label: str, space: str) -> None:
    chart = read_chart(f"graph LR\nA1{space}{line}{space}B1")
    assert not chart.unreadable, chart
    (link,) = chart.links
    assert (link.source, link.target, link.label, link.has_arrow) == ("A1", "B1", label, True)


@pytest.mark.parametrize(
    ("drawn", "shape"),
    [
        ("[T]", "box"), ("(T)", "round"), ("([T])", "stadium"), ("[[T]]", "subroutine"), ("[(T)]", "database"),
        ("((T))", "circle"), (">T]", "flag"), ("{T}", "diamond"), ("{{T}}", "hexagon"), ("[/T/]", "parallelogram"),
        ("[\\T\\]", "parallelogram"), ("[/T\\]", "parallelogram"), ("[\\T/]", "parallelogram"), ("(((T)))", "circle"),
        ("(-T-)", "round"), ('@{ shape: diam, label: "T" }', "diamond"), ("@{ shape: stadium, label: T }", "stadium"),
        ("@{ shape: doc, label: T }", "box"),
    ],
)  # fmt: skip
def test_every_shape_has_its_label(drawn: str, shape: str) -> None:
    (vertex,) = read_chart(f"flowchart TD\n  A{drawn}:::hot").vertices.values()
    assert (vertex.id, vertex.shape, vertex.label) == ("A", shape, "T")
    if "@" not in drawn:
        quoted = drawn.replace("T", '"T (a) [b] {c} #lt;d> -->"')
        (vertex,) = read_chart(f"flowchart TD\n  A{quoted}").vertices.values()
        assert (vertex.shape, vertex.label) == (shape, "T (a) [b] {c} <d> -->")


def test_chains_and_groups_of_steps_are_all_their_lines() -> None:
    chart = read_chart("graph TD; a & b --> c --> d & e;f[x; y]-->a-b\n %% a comment --> none\n")
    assert [(link.source, link.target) for link in chart.links] == [
        ("a", "c"), ("b", "c"), ("c", "d"), ("c", "e"), ("f", "a-b")
    ]  # fmt: skip
    assert chart.vertices["f"].label == "x; y"
    assert not chart.unreadable


def test_what_styles_or_groups_a_chart_is_named_and_nothing_else() -> None:
    text = (
        '%%{init: {"theme": "dark"}}%%\nflowchart LR\nsubgraph one [Part]\ndirection TB\na --> b\nend\n'
        "style a fill:#fff\nlinkStyle 0 stroke:red\nclick a href \"https://x\"\nclass a,b hot\n"
        "accTitle: T\nclassDef hot fill:red;"
    )  # fmt: skip
    imported = _imported(text)
    assert [note["message"].partition(":")[0] for note in imported.report["notes"]] == [
        "subgraph", "direction", "style", "linkStyle", "click", "class", "accTitle", "classDef"
    ]  # fmt: skip
    assert {note["code"] for note in imported.report["notes"]} == {"import-ignored"}
    assert _types(imported) == {"a": "agent", "b": "agent"}


def test_labels_are_read_without_entities_breaks_and_markdown() -> None:
    assert plain_text("`a **b**`") == "a **b**"
    assert plain_text("a<br/>b<BR>c") == "a\nb\nc"
    assert plain_text("#9829; #amp;lt; #0; #55296; &lt;") == "♥ &lt; #0; #55296; <".replace(
        "&lt;", "<", 1
    )


@pytest.mark.parametrize(
    "text", ["a -->", "a --> b[open", "--> b", "a b", "a -->|x b", "a[x] ] --> b", "?"]
)
def test_a_statement_that_cannot_be_read_cannot_run(text: str) -> None:
    imported = _imported(f"graph TD\nx --> y\n{text}")
    assert "placeholder" in outcomes(imported).values()
    assert [e["source"] for e in imported.report["nodes"]][-1] == "/lines/3"


@pytest.mark.parametrize(
    "piece", ["%%{", "a -- ", "a -. . ", "a -.......", "a == =", "a@{", "a[", "a -->| ", "(((", "a-", '"', ";", "#x"]
)  # fmt: skip
def test_a_long_text_is_read_in_a_time_that_grows_with_it(piece: str) -> None:
    for text in (piece * 60_000, piece + " " * 200_000 + "x"):
        assert read_chart(f"graph TD\n{text}").title == ""


def test_lines_between_large_groups_are_bounded() -> None:
    group = " & ".join(f"a{i}" for i in range(2_000))
    chart = read_chart(f"graph TD\n{group} --> {group}\nx --> y")
    assert (len(chart.links), len(chart.unreadable)) == (1, 1)


# -- meaning ---------------------------------------------------------------------------------------


def test_round_steps_are_start_and_end_only_at_the_ends() -> None:
    imported = _imported("graph TD\na([A]) --> b([B]) --> c((C))\nd((D)) --> b\ne([E])")
    assert _types(imported) == {"a": "start", "b": "agent", "c": "end", "d": "text", "e": "agent"}
    assert outcomes(imported)["D"] == "changed"


def test_a_box_that_does_not_speak_of_approval_is_an_agent() -> None:
    imported = _imported("graph TD\na[/Read it/] --> b{{Approve it}} -->|yes| c\nb -->|No| d")
    assert (_types(imported)["a"], _types(imported)["b"]) == ("agent", "approval")
    assert {("b", "approve", "c"), ("b", "reject", "d")} <= {*_edges(imported)}
    other = _imported("graph TD\nb[/Approve it/] -->|maybe| c")
    assert outcomes(other)["Approve it"] == "placeholder"


def test_lines_of_a_choice_without_labels_are_its_default_or_ask_for_one() -> None:
    one = _imported("graph TD\na{Which?} -->|x| b\na --> c")
    assert ("a", "default", "c") in _edges(one)
    assert outcomes(_imported("graph TD\na{Which?} --> b\na --> c"))["Which?"] == "placeholder"


def test_labels_of_other_lines_and_lines_without_arrows_are_changes() -> None:
    imported = _imported("graph TD\na -->|then| b --- c")
    assert [e["outcome"] for e in imported.report["edges"]] == ["changed", "changed"]


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("a <--> b", {"a", "b"}),
        ("a --> b\nb --> a", {"a", "b"}),
        ("subgraph g\nb\nend\na --> g", {"a"}),
    ],
)
def test_lines_that_are_no_steps_after_each_other_are_refused(text: str, lost: set[str]) -> None:
    imported = _imported(f"graph TD\n{text}")
    assert {n for n, outcome in outcomes(imported).items() if outcome == "placeholder"} == lost


def test_hidden_and_repeated_lines_are_left_out() -> None:
    imported = _imported("graph TD\na --> b\na --> b\na ~~~ c\na --> c")
    assert [e["outcome"] for e in imported.report["edges"]] == [
        "mapped",
        "dropped",
        "dropped",
        "mapped",
    ]


async def test_a_choice_takes_the_way_that_a_model_names_and_passes_on_what_arrived() -> None:
    text = "graph TD\ns([Go]) --> q{Sure?}\nq -->|yes| a[Do it]\nq -->|no| b[Leave it]"
    document = _imported(text).document

    def reply(request: Any) -> str:
        return "YES" if "Reply with one of these" in request.prompt else request.prompt

    with use_model(FakeModel(reply)):
        run = planwave.run({name: document[name] for name in ("nodes", "edges")}, "the matter")
        result = await run
    assert "Do it" in result.output
    assert "the matter" in result.output


async def test_a_choice_that_leads_back_is_a_while() -> None:
    text = "graph TD\nw[Write] --> q{Good?}\nq -->|no| w\nq -->|yes| s[Send]"
    imported = _imported(text)
    assert "while" in _types(imported).values()
    assert set(outcomes(imported).values()) == {"mapped", "changed"}
    answers = iter(["no", "yes"])

    def reply(request: Any) -> str:
        return next(answers) if "Reply with one of these" in request.prompt else "text"

    model = FakeModel(reply)
    with use_model(model):
        await planwave.run({name: imported.document[name] for name in ("nodes", "edges")})
    assert len(model.requests) == 5


def test_five_hundred_steps_are_converted() -> None:
    lines = [f"n{i}[Step {i}]" + (f"\nn{i - 9} --> n{i}" if i > 8 else "") for i in range(500)]
    assert len(_imported("flowchart TD\n" + "\n".join(lines)).document["nodes"]) == 500


# -- any chart -------------------------------------------------------------------------------------

_SHAPES = ("[%s]", "(%s)", "([%s])", "[[%s]]", "((%s))", "{%s}", "{{%s}}", "[/%s/]")
_LABELS = st.sampled_from(["Write", "Approve it", "Is it (a) good?", "x #quot;y#quot;", "é 漢"])


@st.composite
def charts(draw_from: st.DrawFn) -> str:
    """Draw a chart without cycles."""
    count = draw_from(st.integers(1, 8))
    lines = [
        f"n{i}" + draw_from(st.sampled_from(_SHAPES)) % f'"{draw_from(_LABELS)} {i}"'
        for i in range(count)
    ]
    for i in range(1, count):
        for source in draw_from(st.sets(st.integers(0, i - 1), max_size=3)):
            label = draw_from(st.sampled_from(["", "|yes|", '|"no"|']))
            lines.append(
                f"n{source} {draw_from(st.sampled_from(['-->', '==>', '-.->']))}{label} n{i}"
            )
    return "flowchart TD\n" + "\n".join(lines)


@given(charts())
def test_a_chart_that_is_drawn_again_has_the_same_steps_and_lines(text: str) -> None:
    imported = _imported(text)
    first = read_chart(text)
    registry = library_registry()
    graph, _ = read_graph({name: imported.document[name] for name in ("nodes", "edges")})
    second = read_chart(mermaid(draw(graph, registry)))
    assert not second.unreadable
    step_of = {
        target: entry["source"].removeprefix("/nodes/")
        for entry in imported.report["nodes"]
        for target in entry["target"]
    }
    assert {step_of[key] for key in second.vertices} == first.vertices.keys()
    named = {key: second.vertices[key].label for key in first.vertices if key in second.vertices}
    assert named == {key: first.vertices[key].label for key in named}
    lines = {(step_of[link.source], step_of[link.target]) for link in second.links}
    drawn = {(link.source, link.target) for link in first.links}
    assert {(source, target) for source, target in lines if source != target} == drawn


_PIECES = st.sampled_from(
    ["a", "b", "c", "-->", "---", "-.->", "==>", "--x", "<-->", "~~~", "|x|", "|", "&", "[T]", "{Q}", "([S])",
     "((E))", "[/approve/]", "{{h}}", '["', '"]', "-- t -->", "@{shape: diam}", ":::k", ";", "\n", "\n", "subgraph g",
     "end", "class a k", "%% c", "%%", "click", "graph TD", "---\ntitle: x\n---", *ODD_TEXTS]
)  # fmt: skip


@given(st.lists(_PIECES, max_size=25), st.sampled_from([" ", ""]))
def test_any_text_after_the_header_is_accounted_for(pieces: list[str], space: str) -> None:
    assert _imported("graph TD\n" + space.join(pieces)).report["kind"] == "mermaid"


@given(st.text(max_size=60))
def test_a_secret_in_a_label_is_taken_out(label: str) -> None:
    secret = "sk-hidden1Xq7Zt42Ab"
    text = f'graph TD\na["{label.replace(chr(34), "")} Authorization: Bearer {secret}"] --> b'
    imported = import_text(text, "mermaid")
    assert secret not in str((imported.document, imported.report))
