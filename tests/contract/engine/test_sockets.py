"""How every node type is shown in an editor: its ports, and the fields of its form."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from planwave.graph.model import FLOW, LINK
from planwave.nodes.authoring.function import node
from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry
from planwave.nodes.sockets import SOCKET_STYLES

REGISTRY = Registry(LIBRARY)


@node("contract_badge", registry=REGISTRY)
async def _badge(input: str, size: int = 1) -> str:
    """Make a badge."""
    return input * size


TYPES = {name: REGISTRY.describe(name) for name in REGISTRY.names()}
names = pytest.mark.parametrize("name", TYPES)


def ports_of(name: str, direction: str, channel: str | None = None) -> list[dict[str, Any]]:
    return [port for port in TYPES[name][direction] if channel in (None, port["channel"])]


def all_ports() -> list[dict[str, Any]]:
    return [
        port for name in TYPES for kind in ("inputs", "outputs") for port in ports_of(name, kind)
    ]


@names
@pytest.mark.parametrize(("direction", "side"), [("inputs", "left"), ("outputs", "right")])
def test_data_flow_in_on_the_left_and_out_on_the_right(
    name: str, direction: str, side: str
) -> None:
    for port in ports_of(name, direction, FLOW):
        if port["name"] == direction.removesuffix("s"):
            assert (port["label"], port["side"]) == ("Data", side)
        fields = TYPES[name]["schema"].get("properties", {})
        is_field = direction == "inputs" and port["name"] in fields
        # The parameters of a function are its inputs.
        is_below = is_field and name != "contract_badge"
        assert port["side"] == ("bottom" if is_below else side)


@names
def test_what_is_only_linked_is_at_the_bottom_and_on_top(name: str) -> None:
    for direction, side in (("inputs", "bottom"), ("outputs", "top")):
        flowing = {port["name"] for port in ports_of(name, direction, FLOW)}
        for port in ports_of(name, direction, LINK):
            if port["name"] not in flowing:
                assert port["side"] == side


@names
def test_a_handle_is_one_socket_with_a_label_of_its_own(name: str) -> None:
    for direction in ("inputs", "outputs"):
        shown: dict[str, set[tuple[str, str]]] = defaultdict(set)
        for port in ports_of(name, direction):
            assert port["label"].strip()
            shown[port["name"]].add((port["label"], port["side"]))
        assert all(len(sockets) == 1 for sockets in shown.values())


def test_a_socket_type_has_one_colour_and_one_shape() -> None:
    looks: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for port in all_ports():
        looks[port["type"]].add((port["color"], port["shape"]))
    listed = {each["type"]: each for each in REGISTRY.socket_types()}
    assert looks == {name: {(listed[name]["color"], listed[name]["shape"])} for name in looks}
    assert set(looks) <= set(SOCKET_STYLES)
    assert {shape for ((_, shape),) in looks.values()} <= {"circle", "square", "diamond", "tab"}


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("conditional", {"true": "True", "false": "False", "{handle}": "{handle}"}),
        ("if", {"condition-{i}": "True", "false": "False"}),
        ("switch", {"case-{i}": "Case {i}", "default": "Default"}),
        ("approval", {"{action}": "{action}"}),
        ("user_input", {"chatId": "Chat id", "message": "Message"}),
        ("model", {"output": "Model"}),
    ],
)
def test_outputs_have_labels(name: str, labels: dict[str, str]) -> None:
    shown = {port["name"]: port["label"] for port in ports_of(name, "outputs")}
    assert labels.items() <= shown.items()


@names
def test_a_form_finds_title_description_and_default_of_every_field(name: str) -> None:
    schema = TYPES[name]["schema"]
    for field, about in schema.get("properties", {}).items():
        assert about["title"], field
        assert ("default" in about) != (field in schema.get("required", ())), field
        if name != "contract_badge":
            assert about["description"].endswith("."), field
        templates = TYPES[name]["template_fields"]
        assert about.get("template", False) == (about.get("sameAs", field) in templates), field


def test_other_socket_types_look_as_their_first_port_says() -> None:
    from planwave.graph.model import Port
    from planwave.nodes.sockets import port_documents, socket_documents, socket_styles

    ports = [Port("a", "kit", color="#123456", shape="tab"), Port("b", "kit", color="#ffffff")]
    styles = socket_styles([*ports, Port("c", "plain"), Port("d", "text", color="#ffffff")])
    shown = port_documents([*ports, Port("d", "text", color="#ffffff")], "input", styles)
    assert [(port["color"], port["shape"]) for port in shown] == [
        ("#123456", "tab"),
        ("#123456", "tab"),
        (SOCKET_STYLES["text"].color, "circle"),
    ]
    listed = {each["type"]: each for each in socket_documents(styles)}
    assert (listed["kit"]["label"], listed["plain"]["shape"]) == ("Kit", "circle")
    assert listed["kit"]["accepts"] == ["any"]
    assert listed["number"]["accepts"] == ["any", "integer"]
    assert set(listed["any"]["accepts"]) == set(styles) - {"any"}
