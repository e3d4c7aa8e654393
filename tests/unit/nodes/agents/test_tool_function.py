"""Functions as tools: what a model sees of them, how they are called, what they may return."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

import planwave
from planwave.errors import ToolError
from planwave.nodes.agents.tool import Tool
from planwave.nodes.agents.tool_function import tool
from planwave.nodes.json_schema import check_schema
from planwave.nodes.registry import Registry
from tests.support.nodes.tool_calls import call_context, call_tool

if TYPE_CHECKING:
    from planwave import ToolCallContext


@dataclass
class Address:
    """Where a customer lives."""

    city: str
    zip_code: int = 0


class Order(BaseModel):
    """An order."""

    title: str
    amount: float = 1.0


def made(function: Any, **options: Any) -> Tool:
    return tool(registry=Registry(), **options)(function).tool


# -- what a model sees


def test_a_tool_has_the_name_the_description_and_the_schema_of_its_function() -> None:
    def search(  # noqa: D417
        query: str,
        kind: Literal["web", "news"] = "web",
        limit: Annotated[int, Field(ge=1, description="How many.")] = 5,
        tags: list[str] = [],  # noqa: B006
    ) -> list[str]:
        """Search the web.

        Args:
            query: What to look for.
            limit: Not this text.
        """
        return []

    found = made(search)
    assert (found.name, found.description, found.kind) == ("search", "Search the web.", "tool")
    assert found.parameters == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for."},
            "kind": {"type": "string", "enum": ["web", "news"], "default": "web"},
            "limit": {"type": "integer", "minimum": 1, "description": "How many.", "default": 5},
            "tags": {"type": "array", "items": {"type": "string"}, "default": []},
        },
        "required": ["query"],
        "additionalProperties": False,
    }


def test_dataclasses_and_models_are_objects_of_the_schema() -> None:
    def ship(to: Address, orders: list[Order]) -> None: ...

    schema = made(ship).parameters
    assert check_schema(dict(schema)) == []
    assert schema["properties"]["to"] == {"$ref": "#/$defs/Address"}
    assert schema["$defs"]["Address"]["required"] == ["city"]
    assert schema["$defs"]["Order"]["properties"]["title"] == {"type": "string"}


def test_a_function_without_parameters_takes_an_empty_object() -> None:
    def now() -> str:
        return "now"

    assert made(now).parameters == {
        "type": "object", "properties": {}, "additionalProperties": False,
    }  # fmt: skip


def test_an_unknown_function_must_not_happen_twice() -> None:
    def act() -> None: ...

    assert (made(act).effect, made(act).approval, made(act).timeout_s) == ("once", "never", None)
    chosen = made(act, name="do-it", effect="read", approval="always", timeout_s=3.0)
    assert (chosen.name, chosen.effect, chosen.approval, chosen.timeout_s) == (
        "do-it", "read", "always", 3.0,
    )  # fmt: skip


# -- calls


async def test_arguments_are_read_as_the_types_of_the_parameters() -> None:
    seen: list[Any] = []

    def note(
        schema: Address, orders: tuple[Order, ...], day: date, copy: Any = None, rest: Any = ()
    ) -> None:
        seen.extend((schema, orders, day, copy, rest))

    result = await call_tool(
        made(note),
        schema={"city": "Bonn", "zip_code": 53111},
        orders=[{"title": "Tea"}],
        day="2026-02-03",
        copy={"any": [1]},
    )
    assert result is None
    assert seen == [
        Address("Bonn", 53111), (Order(title="Tea"),), date(2026, 2, 3), {"any": [1]}, (),
    ]  # fmt: skip


async def test_what_is_left_out_is_the_very_default_of_the_function() -> None:
    default = Address("Bonn")

    def same(where: Address = default) -> bool:
        return where is default

    assert await call_tool(made(same)) is True


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "city is required"),
        ({"city": "x", "size": "big"}, "size has to be a whole number, not text"),
        ({"city": "x", "size": "2"}, "size has to be a whole number, not text"),
        ({"city": "x", "other": 1}, "other is not known here"),
    ],
)
async def test_arguments_that_do_not_fit_are_an_error_that_the_model_sees(
    arguments: dict[str, Any], text: str
) -> None:
    def find(city: str, size: int = 1) -> None: ...

    with pytest.raises(ToolError) as caught:
        await call_tool(made(find), **arguments)
    assert caught.value.code == "invalid-arguments"
    assert caught.value.message == text


async def test_the_context_of_the_call_is_no_argument_of_the_model() -> None:
    async def key(context: ToolCallContext, suffix: str) -> str:
        return context.idempotency_key + suffix

    assert list(made(key).parameters["properties"]) == ["suffix"]
    assert await made(key).call({"suffix": "!"}, call_context()) == "run-1/a/call_1!"

    def bare(context, suffix: str) -> str:  # type: ignore[no-untyped-def]
        return suffix

    assert list(made(bare).parameters["properties"]) == ["context", "suffix"]


async def test_a_function_without_async_runs_in_a_thread() -> None:
    def where() -> bool:
        return threading.current_thread() is threading.main_thread()

    async def here() -> bool:
        return threading.current_thread() is threading.main_thread()

    assert await call_tool(made(where)) is False
    assert await call_tool(made(here)) is True


async def test_calls_of_one_tool_run_at_the_same_time() -> None:
    barrier = asyncio.Barrier(2)

    async def meet() -> str:
        await barrier.wait()
        return "met"

    both = await asyncio.gather(call_tool(made(meet)), call_tool(made(meet)))  # noqa: TID251
    assert both == ["met", "met"]


async def test_an_error_of_the_function_reaches_the_caller() -> None:
    def fail() -> None:
        raise KeyError("no such customer")

    with pytest.raises(KeyError, match="no such customer"):
        await call_tool(made(fail))


# -- results


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ("text", "text"),
        (None, None),
        ({"a": (1, 2.5)}, {"a": [1, 2.5]}),
        (Address("Bonn"), {"city": "Bonn", "zip_code": 0}),
        ([Order(title="Tea")], [{"title": "Tea", "amount": 1.0}]),
        (
            {"on": date(2026, 2, 3), "raw": b"x", "set": {1}},
            {
                "on": "2026-02-03",
                "raw": "x",
                "set": [1],
            },
        ),
    ],
)
async def test_results_are_json_and_dataclasses_and_models_become_it(
    value: Any, result: Any
) -> None:
    def give() -> Any:
        return value

    assert await call_tool(made(give)) == result


@pytest.mark.parametrize(
    "value", [object(), {1: "x"}, [Order, 1], float("nan"), "\ud800", lambda: 1]
)
async def test_a_result_that_is_not_json_is_an_error_that_names_the_tool(value: Any) -> None:
    def give() -> Any:
        return value

    with pytest.raises(ToolError) as caught:
        await call_tool(made(give))
    assert caught.value.code == "result-not-json"
    assert caught.value.message.startswith("the tool 'give' returned no JSON: ")


# -- what cannot be a tool


def _generator() -> Iterator[int]:
    yield 1


async def _async_generator() -> AsyncIterator[int]:
    yield 1


def _any_number(*texts: str) -> None: ...


def _positional(text: str, /) -> None: ...


def _by_name(**texts: str) -> None: ...


def _no_json(value: threading.Lock) -> None: ...  # type: ignore[valid-type]


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (_generator, "is a generator"),
        (_async_generator, "is a generator"),
        (_any_number, "parameter 'texts' cannot be filled by name"),
        (_positional, "parameter 'text' cannot be filled by name"),
        (_by_name, "parameter 'texts' cannot be filled by name"),
        (_no_json, "a type that is not JSON"),
        (partial(_positional, "x"), "is not a function"),
        (Address, "is not a function"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_where_it_is_declared(function: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        made(function)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"effect": "reads"},
            "tool 'act': effect is 'none', 'read', 'write' or 'once', not 'reads'",
        ),
        (
            {"approval": "maybe"},
            "tool 'act': approval is 'never', 'always' or 'write', not 'maybe'",
        ),
        (
            {"timeout_s": 0},
            "tool 'act': timeout_s is a number of seconds above 0, not 0",
        ),
        (
            {"timeout_s": True},
            "tool 'act': timeout_s is a number of seconds above 0, not True",
        ),
    ],
)
def test_an_option_with_an_impossible_value_is_refused_where_it_is_declared(
    options: dict[str, Any], message: str
) -> None:
    def act() -> None: ...

    with pytest.raises(ValueError, match=message):
        made(act, **options)


def test_a_method_is_refused_since_no_model_can_give_its_object() -> None:
    class Shop:
        def look_up(self, number: str) -> str:
            return number

    with pytest.raises(TypeError, match="tool 'look_up' is a method; declare a function"):
        made(Shop.look_up)


def test_the_decorator_stands_alone_or_has_arguments() -> None:
    def planwave_test_bare_tool() -> None: ...

    bare = planwave.tool(planwave_test_bare_tool)
    assert (bare.tool.name, bare.tool.effect) == ("planwave_test_bare_tool", "once")
    with pytest.raises(TypeError, match="a tool is named by text, not 3"):
        planwave.tool(3)  # type: ignore[call-overload]


def test_the_decorated_function_can_still_be_called() -> None:
    @tool(registry=Registry())
    def add(first: int, second: int = 1) -> int:
        return first + second

    assert add(2) == 3
    assert add.__name__ == "add"
    assert repr(add).startswith("<tool 'add': ")
