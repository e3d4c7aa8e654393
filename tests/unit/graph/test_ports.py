"""Which port a handle means."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.graph.model import FLOW, LINK, Channel, Node, Port
from planwave.graph.ports import connection, find_output, find_port, is_numbered, outputs_of
from planwave.graph.protocols import NodeTypeInfo, SchemaOutput

OPEN = Port("{name}")
NUMBERED = Port("way-{i}")
FIXED = Port("way-7")


@pytest.mark.parametrize(
    ("handle", "port"),
    [
        ("way-7", FIXED),
        ("way-0", NUMBERED),
        ("way-12", NUMBERED),
        ("way-01", OPEN),
        ("way-", OPEN),
        ("anything else", OPEN),
    ],
)
def test_fixed_names_precede_patterns_and_patterns_precede_open_names(
    handle: str, port: Port
) -> None:
    assert find_port([OPEN, NUMBERED, FIXED], handle) is port


def test_an_unmatched_handle_has_no_port() -> None:
    assert find_port([NUMBERED, FIXED], "way-x") is None
    assert find_port([OPEN], "") is None


def test_special_characters_in_a_name_match_literally() -> None:
    assert find_port([Port("a.{i}")], "ab1") is None
    assert find_port([Port("a.{i}")], "a.1") is not None


def test_a_socket_for_each_channel_is_found_by_channel() -> None:
    flow, link = Port("tool"), Port("tool", channel=LINK)
    assert find_port([flow, link], "tool", LINK) is link
    assert find_port([link, flow], "tool", "flow") is flow
    assert find_port([flow], "tool", LINK) is flow


def test_an_open_port_does_not_match_the_error_output() -> None:
    own = Port("error")
    assert find_port([OPEN], "error") is OPEN
    assert find_output([OPEN], "error") is None
    assert find_output([OPEN, own], "error") is own
    assert find_output([OPEN], "way-7") is OPEN


def test_only_names_with_a_number_pattern_are_numbered() -> None:
    assert [is_numbered(p) for p in (OPEN, NUMBERED, FIXED)] == [False, True, False]


INTO = NodeTypeInfo(
    "into",
    "",
    (Port("input"), Port("text"), Port("text", channel=LINK), Port("tools", "tool", channel=LINK)),
    (),
)


@pytest.mark.parametrize(
    ("outputs", "out", "into", "found"),
    [
        ([Port("output")], None, "input", ("output", FLOW)),
        ([Port("output", channel=LINK)], None, "text", ("output", LINK)),
        ([Port("output"), Port("output", channel=LINK)], None, "text", ("output", FLOW)),
        ([Port("output"), Port("out", "tool", channel=LINK)], None, "tools", ("out", LINK)),
        ([Port("output"), Port("out", "else", channel=LINK)], None, "tools", ("output", FLOW)),
        ([Port("tools", "tool", channel=LINK)], None, "tools", ("tools", LINK)),
        ([Port("tools", "tool", channel=LINK)], None, "input", ("tools", LINK)),
        ([Port("value")], None, "input", ("value", FLOW)),
        ([Port("way-{i}")], None, "input", ("output", FLOW)),
        ([Port("left"), Port("right")], None, "input", ("output", FLOW)),
        ([], None, "input", ("output", FLOW)),
        ([Port("left"), Port("gear", channel=LINK)], "gear", "input", ("gear", LINK)),
        ([Port("left"), Port("gear", channel=LINK)], "left", "tools", ("left", FLOW)),
        ([Port("left")], "error", "input", ("error", FLOW)),
        ([Port("gear", channel=LINK)], None, "unknown", ("gear", LINK)),
    ],
)
def test_edge_between_two_named_ends_has_the_channel_that_both_have(
    outputs: list[Port], out: str | None, into: str, found: tuple[str, Channel]
) -> None:
    source = NodeTypeInfo("source", "", (), tuple(outputs))
    assert connection(source, out, INTO, into) == found


def test_edge_between_types_that_are_not_known_is_a_flow_from_output() -> None:
    assert connection(None, None, None, "input") == ("output", FLOW)
    assert connection(None, "left", INTO, "input") == ("left", FLOW)
    assert connection(None, "tools", INTO, "tools") == ("tools", LINK)


LIST = Port("output", "json", schema={"type": "array"})
BY_NAME = SchemaOutput("of", Port("output", "json"), {"list": LIST}, unless="elsewhere")


@pytest.mark.parametrize(
    ("data", "output"),
    [
        ({"of": "list"}, LIST),
        ({"of": {"type": "array"}}, LIST),
        ({"of": "other"}, Port("output")),
        ({"of": 7}, Port("output")),
        ({}, Port("output")),
        ({"of": "list", "elsewhere": None}, Port("output")),
    ],
)
def test_an_output_may_be_declared_by_a_schema_or_by_a_name(
    data: dict[str, Any], output: Port
) -> None:
    outputs = (Port("output"), Port("more"))
    facts = NodeTypeInfo("t", "", (), outputs, schema_output=BY_NAME)
    found = outputs_of(Node("a", "t", "a", data=data), facts)
    assert found == (output, Port("more"))
    assert (found is outputs) == (output == Port("output"))
