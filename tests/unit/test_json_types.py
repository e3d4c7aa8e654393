"""Every annotation, in every place where a function has one: read, written, refused, never converted."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypedDict, TypeVar
from uuid import UUID

import pytest
import typing_extensions
from pydantic import Base64Bytes, BaseModel, ConfigDict, Field, RootModel, SecretStr, computed_field

from planwave.errors import PlanwaveError
from planwave.graph.inputs import Inputs
from planwave.graph.json_values import to_json
from planwave.graph.model import Json, Node
from planwave.json_types import JsonType
from planwave.nodes.agents.tool_function import FunctionTool
from planwave.nodes.authoring.function import FunctionNode
from planwave.nodes.builder import GraphBuilder
from planwave.nodes.registry import Registry
from tests.support.nodes.node_context import context_for, make_inputs, result_and_events
from tests.support.nodes.tool_calls import call_tool

T = TypeVar("T")


class Order(BaseModel):
    sku: str
    count: int = Field(1, ge=1)


class Strict(BaseModel):
    """Has a computed field, which is no field to read."""

    model_config = ConfigDict(extra="forbid")

    cents: int

    @computed_field
    @property
    def twice(self) -> int:
        return 2 * self.cents


class Camel(BaseModel):
    model_config = ConfigDict(alias_generator=lambda name: name.upper(), populate_by_name=True)

    due: date


class Tree(BaseModel):
    name: str
    children: list[Tree] = []


class Page(BaseModel, Generic[T]):
    items: list[T]


class Numbers(RootModel[list[int]]):
    pass


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    age: int = 1


@dataclasses.dataclass
class Point:
    x: int
    on: date | None = None


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Movie(typing_extensions.TypedDict):
    title: str
    year: int


class Pair(NamedTuple):
    first: int
    second: str


class Case(NamedTuple):
    """An annotation: a value, its JSON, JSON that is refused, and values that are."""

    annotation: Any
    value: Any
    json: Json
    refused_json: tuple[Json, ...]
    refused: tuple[Any, ...] = ()


DAY = date(2026, 2, 3)
MOMENT = datetime(2026, 2, 3, 4, 5, tzinfo=UTC)
CASES = [
    Case(Order, Order(sku="a"), {"sku": "a", "count": 1}, ({"sku": "a", "count": "2"}, {"count": 1}, "a")),
    Case(Order, Order.model_construct(sku="a", count=2), {"sku": "a", "count": 2}, ({"sku": "a", "count": 0},),
         (Order.model_construct(sku=5, count=1), Order.model_construct(sku="a", count=0), Cat())),
    Case(Strict, Strict(cents=2), {"cents": 2}, ({"cents": 2, "twice": 4}, {"cents": 2.5})),
    Case(Camel, Camel(due=DAY), {"DUE": "2026-02-03"}, ({"DUE": 3}, {"DUE": "3 February"})),
    Case(Tree, Tree(name="a", children=[Tree(name="b")]), {"name": "a", "children": [{"name": "b", "children": []}]},
         ({"name": "a", "children": [{"name": 1}]},)),
    Case(Page[Order], Page[Order](items=[Order(sku="a")]), {"items": [{"sku": "a", "count": 1}]}, ({"items": [1]},)),
    Case(Numbers, Numbers([1]), [1], (["1"], {"root": [1]})),
    Case(Point, Point(1, DAY), {"x": 1, "on": "2026-02-03"}, ({"x": True}, {"on": "2026-02-03"}), (Point("1"),)),  # type: ignore[arg-type]
    Case(date, DAY, "2026-02-03", ("3.2.2026", 20487, "2026-02-03T04:05:06"), (MOMENT, "soon", 3)),
    Case(datetime, MOMENT, "2026-02-03T04:05:00Z", ("now", True), (DAY,)),
    Case(time, time(4, 5), "04:05:00", ("noon",), (MOMENT,)),
    Case(timedelta, timedelta(seconds=3), "PT3S", ("3 s",), (3,)),
    Case(Decimal, Decimal("1.50"), "1.50", ("x", True, [1])),
    Case(UUID, UUID(int=1), "00000000-0000-0000-0000-000000000001", ("1", 1)),
    Case(Path, Path("a/b"), "a/b", (1,)),
    Case(Colour, Colour.RED, "red", ("green", 1)),
    Case(Base64Bytes, b"abcd", "YWJjZA==", (1,)),
    Case(bytes, b"ab", "ab", (1, [97]), (b"\xff",)),
    Case(set[int], {1}, [1], (["1"], [1.5], {"1": 1}), ({"x"},)),
    Case(frozenset[str], frozenset({"a"}), ["a"], ([1],)),
    Case(tuple[int, str], (1, "a"), [1, "a"], ([1], [1, 2], [1, "a", 1]), ((1,), ("a", 1))),
    Case(tuple[date, ...], (DAY,), ["2026-02-03"], (["x"],), ((MOMENT,),)),
    Case(Pair, Pair(1, "a"), [1, "a"], (["1", "a"],)),
    Case(list, [1, "a"], [1, "a"], ({"a": 1}, "a"), ({"a"}, "a")),
    Case(dict, {"a": 1}, {"a": 1}, ([1], "a"), ([1], {1: 2})),
    Case(list[int], [1, 2], [1, 2], ([1, "2"], [True], [1.0], {"0": 1}), ([1, "x"], [True], {1, 2}, "12")),
    Case(list[str], ["a"], ["a"], ([1], "a"), ([DAY], [Decimal(1)], [Colour.RED], "a")),
    Case(list[float], [1.5], [1.5], (["1.5"], [True]), ([Decimal("1.5")],)),
    Case(list[Order], [Order(sku="a")], [{"sku": "a", "count": 1}], ([{"count": 1}], {}), ([Cat()], [{"sku": DAY}])),
    Case(dict[str, int], {"a": 1}, {"a": 1}, ({"a": "1"}, {"a": True}), ({"a": "x"}, {"a": 1.0}, {1: 1})),
    Case(dict[int, str], {1: "a"}, {"1": "a"}, ({"x": "a"},), ({"x": "a"},)),
    Case(dict[date, int], {DAY: 1}, {"2026-02-03": 1}, ({"x": 1},)),
    Case(dict[str, Any], {"a": [1, None]}, {"a": [1, None]}, ([],), ({"a": {1: 2}},)),
    Case(Mapping[str, int], {"a": 1}, {"a": 1}, ({"a": "1"},)),
    Case(Sequence[int], [1], [1], (["1"],), ("1", {1})),
    Case(Movie, {"title": "a", "year": 1}, {"title": "a", "year": 1}, ({"title": "a"}, {"title": "a", "year": "1"})),
    Case(Literal["a", "b"], "a", "a", ("c", 1), ("c",)),
    Case(Literal[1, 2], 1, 1, ("1", 3), ("1", 3)),
    Case(Annotated[int, Field(ge=1)], 1, 1, (0, "1", 1.0, True), (0, True)),
    Case(Annotated[str, Field(max_length=2)], "ab", "ab", ("abc",), ("abc", 12)),
    Case(int | None, None, None, ("1", 1.5), ("1",)),
    Case(str | None, None, None, (1, []), (1,)),
    Case(date | None, DAY, "2026-02-03", ("x", 1), (MOMENT,)),
    Case(int | str, "1", "1", (1.5, None), (1.5,)),
    Case(Order | None, None, None, (1,)),
    Case(Cat | Dog, Dog(age=2), {"kind": "dog", "age": 2}, ({"kind": "cow"},), (Order(sku="a"),)),
    Case(Annotated[Cat | Dog, Field(discriminator="kind")], Cat(), {"kind": "cat"}, ({"age": 1},)),
    Case(None, None, None, (0, ""), (0, "")),
]  # fmt: skip
NAMES = [str(case.annotation).replace("tests.unit.test_json_types.", "") for case in CASES]


async def through_input(annotation: Any, value: Json) -> Any:
    """Return what a function gets for an input, as the node passes it."""
    return await _received(annotation, make_inputs(("value", value)), {})


async def through_field(annotation: Any, value: Json) -> Any:
    """Return what a function gets for a data field."""
    return await _received(annotation, Inputs(), {"value": value}, inputs=())


async def through_wired_field(annotation: Any, value: Json) -> Any:
    """Return what a function gets for a data field that an edge leads into."""
    return await _received(annotation, make_inputs(("value", value)), {}, inputs=())


async def through_tool(annotation: Any, value: Json) -> Any:
    seen: list[Any] = []

    def take(value: Any) -> None:
        seen.append(value)

    take.__annotations__["value"] = annotation
    await call_tool(FunctionTool(take).tool, value=value)
    return seen[0]


async def _received(annotation: Any, arrived: Inputs, data: Any, **options: Any) -> Any:
    seen: list[Any] = []

    async def take(value: Any) -> None:
        seen.append(value)

    take.__annotations__["value"] = annotation
    node = FunctionNode(take, "f", **options)
    await result_and_events(node.execute(data, arrived, context_for(Node("n", "f", "N"))))
    return seen[0]


async def as_result(annotation: Any, value: Any) -> Json:
    """Return the stored result of a node whose function returns a value."""

    async def give() -> Any:
        return value

    give.__annotations__["return"] = annotation
    node = FunctionNode(give, "f")
    result, _ = await result_and_events(
        node.execute({}, Inputs(), context_for(Node("n", "f", "N")))
    )
    stored = to_json(result.outputs["output"].value)
    assert node.result_type.read(stored, "n") == value
    return stored


async def as_tool_result(annotation: Any, value: Any) -> Json:
    def give() -> Any:
        return value

    give.__annotations__["return"] = annotation
    return await call_tool(FunctionTool(give).tool)


READERS = [through_input, through_field, through_wired_field, through_tool]
WRITERS = [as_result, as_tool_result]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("case", CASES, ids=NAMES)
async def test_a_function_gets_a_value_of_its_annotation(case: Case, read: Any) -> None:
    value = await read(case.annotation, case.json)
    assert (type(value), value) == (type(case.value), case.value)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_a_builder_writes_a_value_of_a_field_as_json(case: Case) -> None:
    def take(value: Any) -> None: ...

    take.__annotations__["value"] = case.annotation
    registry = Registry()
    registry.register(FunctionNode(take, "take", inputs=()))
    g = GraphBuilder(registry)
    g.node("take", value=case.value)
    (document,) = g.document()["nodes"]
    assert document["data"] == {"value": case.json}


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("case", CASES, ids=NAMES)
async def test_json_of_another_type_is_refused_and_not_converted(case: Case, read: Any) -> None:
    for refused in case.refused_json:
        with pytest.raises(PlanwaveError) as caught:
            await read(case.annotation, refused)
        assert caught.value.code in ("type-mismatch", "invalid-data", "invalid-arguments"), refused


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("case", CASES, ids=NAMES)
async def test_a_result_is_json_of_its_annotation(case: Case, write: Any) -> None:
    assert await write(case.annotation, case.value) == case.json


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("case", CASES, ids=NAMES)
async def test_a_result_of_another_type_is_refused(case: Case, write: Any) -> None:
    for refused in case.refused:
        with pytest.raises(PlanwaveError) as caught:
            await write(case.annotation, refused)
        assert caught.value.code in ("invalid-result", "result-not-json"), refused


# -- choices: Literal and Enum of every scalar that JSON has

SCALARS: list[Any] = [None, True, False, 0, 1, 2, -1, 0.0, 1.0, 1.5, "", "0", "1", "true", "x"]


def choices_of(scalar: Any) -> dict[str, Any]:
    """Return types with one value, in each form that Python has for it, by name."""
    forms: dict[str, Any] = {"Enum": Enum("Only", {"ONE": scalar})}
    if not isinstance(scalar, float):
        forms["Literal"] = Literal[scalar]
    if type(scalar) is int:
        forms["IntEnum"] = IntEnum("Only", {"ONE": scalar})
    if isinstance(scalar, str):
        forms["StrEnum"] = StrEnum("Only", {"ONE": scalar})
    return forms


def is_choice(scalar: Any, value: Any) -> bool:
    """Return whether a value is the one choice: a whole number may be written for another number."""
    kinds = {float: (float, int)}.get(type(scalar), (type(scalar),))
    return type(value) in kinds and value == scalar


CHOICES = [
    (f"{form}-{scalar!r}", annotation, scalar)
    for scalar in SCALARS
    for form, annotation in choices_of(scalar).items()
]


class Aliased(BaseModel, Generic[T]):
    model_config = ConfigDict(alias_generator=lambda name: name.upper(), populate_by_name=True)

    level: T


NESTED: list[tuple[Any, Any]] = [
    (lambda kind: kind, lambda value: value),
    (lambda kind: kind | Order, lambda value: value),
    (lambda kind: list[kind], lambda value: [value]),
    (lambda kind: set[kind], lambda value: [value]),
    (lambda kind: tuple[kind, date], lambda value: [value, "2026-02-03"]),
    (lambda kind: dict[str, kind], lambda value: {"a": value}),
    (lambda kind: RootModel[kind], lambda value: value),
    (lambda kind: Aliased[kind], lambda value: {"LEVEL": value}),
    (lambda kind: Aliased[kind], lambda value: {"level": value}),
    (lambda kind: list[Aliased[kind]], lambda value: [{"level": value}]),
]


@pytest.mark.parametrize("nest", NESTED)
@pytest.mark.parametrize(("_", "annotation", "scalar"), CHOICES, ids=[each[0] for each in CHOICES])
def test_only_the_value_itself_is_read_as_a_choice(
    _: str, annotation: Any, scalar: Any, nest: tuple[Any, Any]
) -> None:
    shape, json_of = nest
    kind = JsonType[Any](shape(annotation))
    for value in SCALARS:
        if is_choice(scalar, value):
            assert kind.write(kind.read(json_of(value), "it"), "it") is not None or value is None
            continue
        with pytest.raises(PlanwaveError) as caught:
            kind.read(json_of(value), "it")
        assert caught.value.code == "type-mismatch", value


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(("_", "annotation", "scalar"), CHOICES, ids=[each[0] for each in CHOICES])
async def test_a_function_gets_no_choice_for_a_value_that_only_equals_it(
    _: str, annotation: Any, scalar: Any, read: Any
) -> None:
    for value in SCALARS:
        if value == scalar and not is_choice(scalar, value):
            with pytest.raises(PlanwaveError) as caught:
                await read(annotation, value)
            assert caught.value.code in ("type-mismatch", "invalid-data", "invalid-arguments")


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize(("_", "annotation", "scalar"), CHOICES, ids=[each[0] for each in CHOICES])
async def test_a_result_is_no_choice_that_it_only_equals(
    _: str, annotation: Any, scalar: Any, write: Any
) -> None:
    for value in SCALARS:
        if value == scalar and not is_choice(scalar, value):
            with pytest.raises(PlanwaveError) as caught:
                await write(annotation, value)
            assert caught.value.code == "invalid-result", value


@pytest.mark.parametrize(
    ("annotation", "given", "expected"),
    [
        (Literal[1, True], [True, 1], [True, 1]),
        (set[Literal[2, True]], [2, True], {True, 2}),
        (bool | Literal[1], [True, 1], [True, 1]),
    ],
)
def test_values_that_equal_each_other_are_kept_apart(
    annotation: Any, given: list[Any], expected: Any
) -> None:
    kind = annotation if isinstance(expected, set) else list[annotation]
    read = JsonType[Any](kind).read(given, "it")
    assert read == expected
    assert sorted(map(repr, read)) == sorted(map(repr, expected))


def test_a_refused_choice_is_named_with_its_place() -> None:
    with pytest.raises(PlanwaveError) as caught:
        JsonType[Any](dict[str, list[Literal[1, 2]]]).read({"a": [2, True]}, "the input")
    assert caught.value.message == "the input.a.1 has to be 1"
    with pytest.raises(PlanwaveError) as caught:
        JsonType[Any](Literal[1] | bool).read(True, "the input")
    assert caught.value.message == "the input has to be 1"


# -- what would be lost


class Base(BaseModel):
    kind: str = "base"


class Derived(Base):
    extra: int = 1


class TwoNames(BaseModel):
    cents: int = Field(validation_alias="a", serialization_alias="b")


class Holder(BaseModel):
    inner: TwoNames


class Hidden(BaseModel):
    password: SecretStr


class OldDict(TypedDict):
    title: str


class Opaque:
    pass


@pytest.mark.parametrize(
    ("annotation", "value", "message", "hint"),
    [
        (Base, Derived(), "the result is a Derived, which would be read back as a Base",
         "declare Base | Derived, or return a Base"),
        (list[Base], [Base(), Derived()],
         "the result.1 is a Derived, which would be read back as a Base",
         "declare Base | Derived, or return a Base"),
        (date | str, "2026-02-03", "the result is a str, which would be read back as a date",
         "declare date | str, or return a date"),
        (str | date, DAY, "the result is a date, which would be read back as a str",
         "declare str | date, or return a str"),
        (dict[str, Any], {"a": {1: 2}}, "a key of the result.a is an int, which would be read back "
         "as a str", "declare str | int, or return a str"),
    ],
)  # fmt: skip
async def test_a_result_that_would_be_read_back_as_another_is_refused(
    annotation: Any, value: Any, message: str, hint: str
) -> None:
    with pytest.raises(PlanwaveError) as caught:
        await as_result(annotation, value)
    assert (caught.value.message, caught.value.hint) == (message, hint)
    assert await as_result(Base | Derived, Derived()) == {"kind": "base", "extra": 1}


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        (TwoNames, "'b' is written under this name but not read under it"),
        (list[Holder], "'b' is written under this name but not read under it"),
        (Hidden, "'password' is hidden in JSON"),
        (SecretStr, "SecretStr is hidden in JSON"),
        (OldDict, "use typing_extensions.TypedDict instead of typing.TypedDict"),
        (Opaque, "Opaque is a type that is not JSON"),
    ],
)
def test_a_result_type_that_cannot_be_read_back_is_refused_at_the_decorator(
    annotation: Any, message: str
) -> None:
    async def give() -> Any: ...

    give.__annotations__["return"] = annotation
    with pytest.raises(TypeError, match=f"node type 'f': the result: {message}"):
        FunctionNode(give, "f")


def test_an_input_type_that_is_not_json_is_refused_at_the_decorator() -> None:
    for annotation in (OldDict, Opaque):

        async def take(input: Any) -> None: ...

        take.__annotations__["input"] = annotation
        with pytest.raises(TypeError, match="node type 'f': input 'input': "):
            FunctionNode(take, "f")


async def test_a_result_without_an_annotation_is_written_as_its_parts_are() -> None:
    parts = {"order": Order(sku="a"), "days": [DAY, Point(1)], "cost": Decimal("1.5")}
    assert JsonType[Any](Any).write(parts, "the result") == {
        "order": {"sku": "a", "count": 1},
        "days": ["2026-02-03", {"x": 1, "on": None}],
        "cost": "1.5",
    }
    for refused in (Opaque(), {"a": Opaque()}, [b"\xff"]):
        assert JsonType[Any](Any).write(refused, "the result") is refused


async def test_a_value_that_is_nested_too_deep_or_in_itself_is_refused_and_not_a_crash() -> None:
    endless: list[Any] = []
    endless.append(endless)
    deep: Any = 1
    for _ in range(2_000):
        deep = [deep]
    for annotation, value in [(list, endless), (list, deep), (Tree, endless)]:
        with pytest.raises(PlanwaveError):
            JsonType[Any](annotation).write(value, "the result")
    assert JsonType[Any](Any).write(deep, "the result") is deep


def test_a_message_names_at_most_five_parts() -> None:
    with pytest.raises(PlanwaveError) as caught:
        JsonType[Any](list[int]).read(["x"] * 9, "input")
    assert caught.value.message.count("has to be") == 5
    with pytest.raises(PlanwaveError, match=r"^input has to be a whole number, .*; or input "):
        JsonType[Any](int | list[str]).read({}, "input")
