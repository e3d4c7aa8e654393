"""Schemas at the two ends of an edge: what is refused could not have run."""

import dataclasses
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, NamedTuple, NotRequired

import pytest
from pydantic import BaseModel, ConfigDict, computed_field
from typing_extensions import TypedDict

from planwave.graph.checking.schemas import schema_mismatch
from planwave.json_types import JsonType


class Quote(BaseModel):
    sku: str
    cents: int = 0


class Total(BaseModel):
    total: float


class Order(BaseModel):
    quotes: list[Quote]
    total: Total | None = None


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    sku: str


class Computed(BaseModel):
    sku: str

    @computed_field
    @property
    def total(self) -> float:
        return 1.0


class Tree(BaseModel):
    name: str
    children: list["Tree"] = []


class Film(TypedDict):
    title: str
    year: NotRequired[int]


class Sized(BaseModel):
    title: str
    year: int


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Pair(NamedTuple):
    first: int
    second: str


class Colour(Enum):
    RED = "red"


TREE = Tree(name="a", children=[Tree(name="b")])
VALUES: list[tuple[Any, Any]] = [
    (str, "a"),
    (int, 1),
    (float, 1.5),
    (bool, True),
    (None, None),
    (date, date(2026, 2, 3)),
    (Decimal, Decimal("1.5")),
    (Colour, Colour.RED),
    (Literal["red", 3], "red"),
    (Any, {"sku": "a"}),
    (list[int], [1]),
    (list[float], [1.0, 2.5]),
    (list[Quote], [Quote(sku="a")]),
    (list[Quote | Total], [Quote(sku="a"), Total(total=1)]),
    (list[list[str]], [["a"]]),
    (list[Any], [1]),
    (set[str], {"a"}),
    (tuple[int, str], (1, "a")),
    (Pair, Pair(1, "a")),
    (dict[str, int], {"total": 1}),
    (Mapping[str, Any], {"sku": "a"}),
    (Quote, Quote(sku="a")),
    (Total, Total(total=2)),
    (Order, Order(quotes=[Quote(sku="a")], total=Total(total=1))),
    (Open, Open.model_validate({"sku": "a", "total": 1})),
    (Computed, Computed(sku="a")),
    (Tree, TREE),
    (Film, {"title": "a", "year": 1}),
    (Sized, Sized(title="a", year=1)),
    (Point, Point(1)),
    (Quote | Total, Total(total=1)),
    (Quote | None, None),
    (list[Quote] | None, [Quote(sku="a")]),
]
NAMES = [str(annotation) for annotation, _ in VALUES]


def schema_of(annotation: Any, mode: Any) -> dict[str, Any]:
    schema = JsonType[Any](annotation).schema(mode)
    assert schema is not None
    return schema


@pytest.mark.parametrize(("annotation", "value"), VALUES, ids=NAMES)
def test_what_can_be_read_is_never_refused(annotation: Any, value: Any) -> None:
    given = schema_of(annotation, "serialization")
    written = JsonType[Any](annotation).write(value, "it")
    assert schema_mismatch(given, schema_of(annotation, "validation")) is None
    for other, _ in VALUES:
        try:
            JsonType[Any](other).read(written, "it")
        except Exception:  # noqa: BLE001, S112 - any refusal
            continue
        assert schema_mismatch(given, schema_of(other, "validation")) is None, other


@pytest.mark.parametrize(
    ("given", "taken", "reason"),
    [
        (list[Quote], Quote, "it is a list, not an object"),
        (Quote, list[Quote], "it is an object, not a list"),
        (str, Quote, "it is text, not an object"),
        (float, bool, "it is a number, not true or false"),
        (int, str, "it is a whole number, not text"),
        (None, Quote, "it is null, not an object"),
        (Quote | None, list[int], "it is null or an object, not a list"),
        (Quote, Total, "it has no field 'total'"),
        (list[Quote], list[Total], "an item of the list has no field 'total'"),
        (list[list[str]], list[list[int]], "an item of an item of the list is text, not a whole number"),
        (Sized, Film, None),
        (Film, Sized, None),
        (Open, Total, None),
        (Any, Quote, None),
        (Quote, Any, None),
        (Tree, Tree, None),
        (Quote, Quote | Total, None),
        (int, float, None),
    ],
)  # fmt: skip
def test_the_reason_names_the_part(given: Any, taken: Any, reason: str | None) -> None:
    found = schema_mismatch(schema_of(given, "serialization"), schema_of(taken, "validation"))
    assert found == reason


def test_a_field_of_another_kind_is_named() -> None:
    def with_fields(**fields: Any) -> dict[str, Any]:
        return {"type": "object", "properties": fields, "required": [*fields]}

    text, inner = {"type": "string"}, with_fields(x={"type": "string"})
    assert schema_mismatch(with_fields(a=text), with_fields(a={"type": "array"})) == (
        "its field 'a' is text, not a list"
    )
    assert schema_mismatch(with_fields(a=inner), with_fields(a=with_fields(y=text))) == (
        "its field 'a' has no field 'y'"
    )
    assert schema_mismatch(
        with_fields(a=inner), with_fields(a=with_fields(x={"type": "null"}))
    ) == ("field 'x' of its field 'a' is text, not null")


@pytest.mark.parametrize(
    "loose",
    [{}, {"type": []}, {"items": True}, {"$ref": "#/$defs/none"}, {"anyOf": [{}, {"type": "null"}]},
     {"type": "array", "items": True}, {"type": "object", "properties": {"a": True}, "required": ["a"]}],
)  # fmt: skip
def test_a_schema_that_says_little_takes_all(loose: dict[str, Any]) -> None:
    lists = {"type": "array", "items": {"type": "string"}}
    objects = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    kind = loose.get("type", "")
    for other in (lists, objects):
        if kind in ("", [], other["type"]):
            assert (schema_mismatch(loose, other), schema_mismatch(other, loose)) == (None, None)


def test_a_schema_within_itself_ends() -> None:
    endless = {
        "$ref": "#/$defs/a",
        "$defs": {"a": {"type": "array", "items": {"$ref": "#/$defs/a"}}},
    }
    assert schema_mismatch(endless, endless) is None
    assert (
        schema_mismatch({"$ref": "#/$defs/b", "$defs": {"b": {"$ref": "#/$defs/b"}}}, endless)
        is None
    )
