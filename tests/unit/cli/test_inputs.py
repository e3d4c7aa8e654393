import io
import sys
from pathlib import Path
from typing import Any

import pytest

from planwave.cli import inputs
from planwave.cli.inputs import (
    merge_inputs,
    read_goal,
    read_inputs,
    read_json_file,
    read_source,
    resolve_inputs,
)
from planwave.errors import GraphInvalid, InputError, NotFound
from planwave.graph.model import Graph, Node
from tests.support.graph.builders import make_graph, text_node
from tests.support.llm.fake_providers import library_registry

ONE = make_graph(Node("begin", "start", "Begin"), text_node("b"), edges=[("begin", "b")])
TWO = make_graph(Node("s1", "start", "S"), Node("s2", "start", "S"))


def resolved(*written: str, graph: Graph = ONE) -> dict[str, Any]:
    return resolve_inputs(read_inputs(written), graph, library_registry())


def test_text_goes_to_the_only_entry_node() -> None:
    assert resolved("a = b") == {"begin": {"output": "a = b"}}


FORM = make_graph(
    Node(
        "begin",
        "start",
        "Begin",
        data={"schema": {"properties": {"who": {"type": "string"}, "n": {"type": "number"}}}},
    ),
    text_node("b"),
    edges=[("begin", "b")],
)


def test_the_fields_of_the_entry_that_declares_some_are_named_one_by_one() -> None:
    both = {"begin": {"output": {"who": "12", "n": 3}}}
    assert resolved("who=12", "n=3", graph=FORM) == both
    assert resolved('{"who": "12", "n": 3}', graph=FORM) == both
    assert resolved("begin=x", graph=FORM) == {"begin": {"output": "x"}}
    assert merge_inputs(read_inputs(["who=12", "n=3"]), FORM, {"start"}) == both
    assert resolved("n=many", graph=FORM) == {"begin": {"output": {"n": "many"}}}
    with pytest.raises(InputError) as caught:
        resolved("whom=12", graph=FORM)
    assert "the fields of the input are who, n" in str(caught.value.hint)


def test_node_and_handle_can_be_named() -> None:
    written = ["s1=x=y", "s2:output=z"]
    both = {"s1": {"output": "x=y"}, "s2": {"output": "z"}}
    assert resolved(*written, graph=TWO) == both
    assert resolved(*written, "s2=w", graph=TWO)["s2"] == {"output": "w"}


@pytest.mark.parametrize("written", ["b=hi", "b:output=hi", '{"b": {"output": "hi"}}'])
def test_input_of_a_step_that_is_no_entry_names_the_way_to_set_its_result(written: str) -> None:
    for read in (
        lambda: resolved(written),
        lambda: merge_inputs(read_inputs([written]), ONE, {"start"}),
    ):
        with pytest.raises(InputError, match="'b' is none: it would not run") as refused:
            read()
        assert refused.value.hint is not None
        assert "--set-result b=TEXT" in refused.value.hint
        assert "entry steps are begin" in refused.value.hint


@pytest.mark.parametrize("written", ["b=hi", "b:output=hi", '{"b": {"output": "hi"}}'])
def test_the_result_of_any_step_can_be_set(written: str) -> None:
    arguments = read_inputs(["begin=x"], [written])
    expected = {"begin": {"output": "x"}, "b": {"output": "hi"}}
    assert resolve_inputs(arguments, ONE, library_registry()) == expected
    assert merge_inputs(arguments, ONE, {"start"}) == expected


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("hello", "--set-result 'hello' does not say which node it is for"),
        ("bb=hello", "--set-result 'bb=hello': the graph has no node 'bb'"),
        ("{x", "--set-result '{x': "),
    ],
)
def test_a_result_names_its_step(written: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        resolve_inputs(read_inputs([], [written]), ONE, library_registry())
    assert refused.value.message.startswith(message)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("begn=hi", "did you mean 'begin'?"),
        ("begn:output=hi", "did you mean 'begin'?"),
        ("zzz=hi", "the nodes are begin, b"),
    ],
)
def test_input_for_an_unknown_node_names_the_nearest(text: str, hint: str) -> None:
    for graph_inputs in (
        lambda: resolved(text),
        lambda: merge_inputs(read_inputs([text]), ONE, {"start"}),
    ):
        with pytest.raises(InputError) as caught:
            graph_inputs()
        node = text.partition("=")[0].partition(":")[0]
        assert caught.value.message == f"--input {text!r}: the graph has no node {node!r}"
        more = " (a text that contains = is read from stdin with --input -)"
        assert caught.value.hint == hint + more


def test_text_from_stdin_goes_to_the_only_entry_node(monkeypatch: pytest.MonkeyPatch) -> None:
    for written in ("begn=hi\n", '{"not": "parsed"}'):
        monkeypatch.setattr(sys, "stdin", Stdin(written.encode()))
        assert resolved("-") == {"begin": {"output": written.removesuffix("\n")}}
    monkeypatch.setattr(sys, "stdin", Stdin(b"\xff"))
    with pytest.raises(InputError, match="the input on stdin is not UTF-8"):
        read_inputs(["-"])


def test_text_whose_start_cannot_be_a_node_is_plain() -> None:
    for text in ("a = b", "https://x/?y=z", "Say: a=b"):
        assert resolved(text) == {"begin": {"output": text}}


def test_object_gives_any_json() -> None:
    assert resolved('{"begin": {"output": [1]}}') == {"begin": {"output": [1]}}


def test_flat_object_goes_to_the_only_entry_node() -> None:
    assert resolved('{"output": [1]}') == {"begin": {"output": [1]}}


@pytest.mark.parametrize("text", ["x", '{"zz": {"output": 1}}', '{"s1": 5}', "s1:zz=x"])
def test_input_for_unknown_node_is_rejected(text: str) -> None:
    with pytest.raises(InputError):
        resolved(text, graph=TWO)


def test_malformed_object_is_rejected_as_input() -> None:
    with pytest.raises(InputError, match=r"--input '\{x': not JSON") as caught:
        read_inputs(["fine", "{x"])
    assert not isinstance(caught.value, GraphInvalid)
    assert "NODE=TEXT" in str(caught.value.hint)


def test_no_input_is_empty() -> None:
    assert resolved(graph=TWO) == {}


@pytest.mark.parametrize(
    "written",
    [
        ["a = b"],
        ["begin:output=z"],
        ["begin=first", "begin=second"],
        ['{"begin": {"output": [1]}}', "begin=x"],
        ['{"output": 1}'],
        ['{"begin": {"output": 1}}', '{"begin": {"output": null}}'],
    ],
)
def test_remote_and_local_inputs_are_equal(written: list[str]) -> None:
    assert merge_inputs(read_inputs(written), ONE, {"start"}) == resolved(*written)


def test_remote_inputs_are_sent_unchecked() -> None:
    odd = ['{"zz": {"output": 1}}', '{"s1": 3}', '{"s1": {"output": 2}}']
    sent = merge_inputs(read_inputs(odd), TWO, {"start"})
    assert sent == {"zz": {"output": 1}, "s1": {"output": 2}}
    with pytest.raises(InputError, match="2 entry nodes"):
        merge_inputs(["hello"], TWO, {"start"})


class Stdin(io.TextIOWrapper):
    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content))


def test_file_is_read_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "g.json").write_bytes(b"{}")
    source = read_source(str(tmp_path / "g.json"))
    assert source == (str(tmp_path / "g.json"), b"{}")


def test_json_file_is_read_from_path_or_stdin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "v.json").write_bytes(b'"v"')
    assert read_json_file(str(tmp_path / "v.json")) == b'"v"'
    monkeypatch.setattr(sys, "stdin", Stdin(b"[1]"))
    assert read_json_file("-") == b"[1]"
    with pytest.raises(NotFound):
        read_json_file(str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="cannot be read"):
        read_json_file(str(tmp_path))


def test_dash_reads_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin(b"{}"))
    assert read_source("-") == ("stdin", b"{}")
    monkeypatch.setattr(sys, "stdin", Stdin("\ufeffGezeiten erklären\n".encode()))
    assert read_goal("-") == "Gezeiten erklären"
    assert read_goal(" as written ") == " as written "


@pytest.mark.parametrize("name", ["none.json", ""])
def test_missing_file_is_reported_with_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotFound, match=f"there is no file '{name}'") as caught:
        read_source(name)
    assert "--json > FILE" in str(caught.value.hint)


@pytest.mark.parametrize("name", [".", "x" * 5000, "a\0b"])
def test_unreadable_file_is_reported(name: str) -> None:
    with pytest.raises(InputError, match="cannot be read: ") as caught:
        read_source(name)
    assert len(caught.value.message) < 300
    assert "- for stdin" in str(caught.value.hint)


def test_closed_stdin_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    for read in (read_source, read_goal):
        with pytest.raises(InputError, match="stdin is closed"):
            read("-")


def test_oversized_input_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "MAX_FILE_BYTES", 10)
    (tmp_path / "big").write_bytes(b"x" * 11)
    with pytest.raises(InputError, match="big' is larger than"):
        read_source(str(tmp_path / "big"))
    monkeypatch.setattr(sys, "stdin", Stdin(b"x" * 11))
    with pytest.raises(InputError, match="stdin is larger than"):
        read_goal("-")


def test_invalid_utf8_goal_names_the_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin(b"ab\xff"))
    with pytest.raises(InputError, match="not UTF-8: byte 2 is 0xff"):
        read_goal("-")
