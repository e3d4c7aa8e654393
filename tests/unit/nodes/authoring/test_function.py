from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from collections.abc import AsyncIterator
from inspect import signature
from typing import Any, Literal

import pytest
from pydantic import BaseModel

import planwave
from planwave.errors import NodeError, PermanentError
from planwave.graph.inputs import Inputs
from planwave.graph.model import FLOW, LINK, DataValue, Graph, Node, Port, Retry
from planwave.graph.protocols import ExecutionResult, FlowContext, NodeEvent
from planwave.graph.reading.policy import read_policy
from planwave.nodes.authoring.function import Collected, FunctionNode, Result, node
from planwave.nodes.registry import Registry, default_registry
from planwave.planner.capabilities import type_cards
from tests.support.nodes.node_context import context_for, make_inputs, result_and_events

NODE = Node("n", "f", "N")


async def shout(input: str, times: int = 1) -> str:
    """Say the input loudly.

    More about it.
    """
    return input.upper() * times


async def output(function: Any, inputs: Inputs, data: Any = None, **options: Any) -> DataValue:
    node_type = function if isinstance(function, FunctionNode) else FunctionNode(function, "f")
    result, _ = await result_and_events(
        node_type.execute(data or {}, inputs, context_for(NODE, **options))
    )
    return result.outputs["output"]


def test_a_function_becomes_a_type_with_ports_from_its_signature() -> None:
    registry = Registry()
    node("shout", registry=registry)(shout)
    facts = registry.type_info("shout")
    assert facts is not None
    assert facts.purpose == "Say the input loudly."
    assert facts.inputs == (
        Port("input", "text", multiple=True, required=True),
        Port("times", "integer", channel=FLOW, side="left"),
        Port("times", "integer", channel=LINK, side="left"),
    )
    assert facts.outputs == (Port("output", "text"),)
    assert (facts.entry, facts.effect, facts.template_fields) == (False, "none", ())


async def test_a_function_without_async_runs_in_a_thread_with_the_context_of_its_node() -> None:
    language = contextvars.ContextVar("language", default="none")

    def blocking(input: str) -> str:
        is_main = threading.current_thread() is threading.main_thread()
        return f"{input} {language.get()} {is_main}"

    language.set("en")
    assert await output(blocking, make_inputs("hi")) == DataValue("text", "hi en False")


async def test_a_node_in_a_thread_is_cancelled_without_waiting_for_the_thread() -> None:
    started, is_released = threading.Event(), threading.Event()

    def blocking(input: str) -> str:
        started.set()
        is_released.wait(30)
        return input

    async with asyncio.TaskGroup() as group:
        task = group.create_task(output(blocking, make_inputs("hi")))
        await asyncio.to_thread(started.wait, 30)
        task.cancel()
    assert task.cancelled()
    is_released.set()


async def test_a_registered_function_can_still_be_called() -> None:
    node_type = node("shout", registry=Registry())(shout)
    assert await node_type("hi", times=2) == "HIHI"
    assert node_type.__name__ == "shout"
    assert repr(node_type) == "<node type 'shout': shout>"


async def test_parameters_are_filled_from_inputs_data_and_defaults() -> None:
    assert await output(shout, make_inputs("hi")) == DataValue("text", "HI")
    assert await output(shout, make_inputs("hi"), {"times": 2}) == DataValue("text", "HIHI")


async def test_the_annotation_of_input_decides_how_several_values_are_passed() -> None:
    async def text(input: str) -> Any:
        return input

    async def many(input: Collected[int]) -> Any:
        return input

    async def value(input: Any) -> Any:
        return input

    async def bare(input) -> Any:  # type: ignore[no-untyped-def]
        return input

    both = "From Source 0 (s0):\n1\n\nFrom Source 1 (s1):\n2"
    for function, one, two in [
        (text, "1", both),
        (many, [1], [1, 2]),
        (value, 1, [1, 2]),
        (bare, 1, [1, 2]),
    ]:
        assert (await output(function, make_inputs(1))).value == one
        assert (await output(function, make_inputs(1, 2))).value == two


async def test_context_and_inputs_can_be_parameters() -> None:
    async def f(context: FlowContext, everything: Inputs) -> Any:
        return [context.node_id, [a.value.value for a in everything.arrivals]]

    node_type = FunctionNode(f, "f")
    assert node_type.inputs == (Port("{name}", multiple=True),)
    assert (await output(node_type, make_inputs(("x", 1), ("y", 2)))).value == ["n", [1, 2]]

    async def g(context, input="-") -> Any:  # type: ignore[no-untyped-def]
        return [context.node_id, input]

    assert (await output(g, Inputs())).value == ["n", "-"]


async def test_a_missing_input_fails_the_node_and_names_it() -> None:
    with pytest.raises(NodeError, match="'f' got nothing for 'input'") as caught:
        await output(shout, Inputs(), {"times": 2})
    assert caught.value.code == "missing-required-input"


async def test_data_are_validated() -> None:
    for data in ({"times": "2"}, {"time": 2}):
        with pytest.raises(NodeError) as caught:
            await output(shout, make_inputs("x"), data)
        assert caught.value.code == "invalid-data"


def test_the_checker_sees_the_data_of_a_function_node() -> None:
    registry = Registry([FunctionNode(shout, "f")])
    for data, pointer in [({"times": "2"}, "/data/times"), ({"tims": 2}, "/data/tims")]:
        faulty = Node("n", "f", "N", data=data)
        (diagnostic,) = registry.check(faulty, Graph((faulty,), ()))
        assert (diagnostic.code, diagnostic.pointer) == ("invalid-data", pointer)
    assert list(registry.check(NODE, Graph((NODE,), ()))) == []
    assert registry.schema("f")["properties"] == {
        "times": {"default": 1, "title": "times", "type": "integer"}
    }


async def test_named_inputs_make_all_other_parameters_data_fields() -> None:
    async def f(a: int, b: int, c: int = 3) -> int:
        return a * 100 + b * 10 + c

    node_type = FunctionNode(f, "f", inputs=("a", Port("c", "number")))
    assert node_type.inputs == (Port("a", "integer", required=True), Port("c", "number"))
    assert (await output(node_type, make_inputs(("a", 1)), {"b": 2})).value == 123
    (diagnostic,) = Registry([node_type]).check(NODE, Graph((NODE,), ()))
    assert (diagnostic.code, diagnostic.pointer) == ("missing-required-input", "/data/b")


async def test_template_fields_are_declared_and_read_as_text() -> None:
    async def f(input: str, prompt: str = "") -> str:
        return prompt

    node_type = FunctionNode(f, "f", templates=["prompt"])
    assert (await output(node_type, make_inputs("x"), {"prompt": {"a": 1}})).value == '{"a":1}'
    facts = Registry([node_type]).type_info("f")
    assert facts is not None
    assert facts.template_fields == ("prompt",)


async def test_parameter_names_used_by_pydantic_are_allowed() -> None:
    async def f(schema: str = "s", copy: int = 1, model_name: str = "m") -> Any:
        return [schema, copy, model_name]

    assert (await output(f, Inputs(), {"schema": "x", "copy": 2})).value == ["x", 2, "m"]


async def test_a_required_field_may_be_set_by_a_wire() -> None:
    async def f(input: Any, times: int, more: int = 2) -> Any:
        return [input, times, more]

    node_type = FunctionNode(f, "f", inputs=["input"])
    assert (await output(node_type, make_inputs("a", ("times", 3)), {"more": 4})).value == [
        "a",
        3,
        4,
    ]
    assert (await output(node_type, make_inputs("a", ("times", 3)))).value == ["a", 3, 2]
    with pytest.raises(NodeError, match=r"data\.times is required"):
        await output(node_type, make_inputs("a"), {"more": 4})


@pytest.mark.parametrize(
    "returned", [DataValue, ExecutionResult, ExecutionResult | None, DataValue | str]
)
def test_a_return_annotation_of_an_envelope_gives_an_output_of_any_type(returned: Any) -> None:
    async def f(input: Any) -> Any: ...

    f.__annotations__["return"] = returned
    assert FunctionNode(f, "f").outputs == (Port("output", "any"),)


async def test_a_plain_value_leaves_through_the_only_output() -> None:
    async def f(input: Any) -> Any:
        return input

    node_type = FunctionNode(f, "f", outputs=("answer",))
    result, _ = await result_and_events(node_type.execute({}, make_inputs(1), context_for(NODE)))
    assert result.outputs == {"answer": DataValue("integer", 1)}
    several = FunctionNode(f, "f", outputs=("yes", "no"))
    with pytest.raises(NodeError, match="returned a plain value") as caught:
        await result_and_events(several.execute({}, make_inputs(1), context_for(NODE)))
    assert caught.value.code == "invalid-result"


async def test_an_execution_result_names_other_handles() -> None:
    async def f(input: Any) -> ExecutionResult:
        return ExecutionResult({"yes": DataValue("any", input)})

    node_type = FunctionNode(f, "f", outputs=("yes", Port("no", "text")))
    assert node_type.outputs == (Port("yes"), Port("no", "text"))
    result, _ = await result_and_events(node_type.execute({}, make_inputs(1), context_for(NODE)))
    assert result.outputs == {"yes": DataValue("any", 1)}


async def streamed(function: Any) -> tuple[Any, list[Any]]:
    node_type = FunctionNode(function, "f")
    result, events = await result_and_events(
        node_type.execute({}, make_inputs("x"), context_for(NODE))
    )
    return result.outputs["output"], [(e.event_type, e.data) for e in events]


async def test_a_generator_streams_text_and_its_text_is_the_result() -> None:
    async def f(input: str) -> AsyncIterator[str]:
        yield input
        yield "y"

    deltas = [("delta", {"text": t, "kind": "text"}) for t in "xy"]
    assert await streamed(f) == (DataValue("text", "xy"), deltas)


@pytest.mark.parametrize(
    ("last", "given"),
    [
        ({"n": 1}, DataValue("json", {"n": 1})),
        (Result("other"), DataValue("text", "other")),
        (ExecutionResult({"output": DataValue("x", 1)}), DataValue("x", 1)),
    ],
)
async def test_the_first_other_value_is_the_result_and_ends_the_stream(
    last: Any, given: DataValue
) -> None:
    closed: list[bool] = []

    async def f() -> AsyncIterator[Any]:
        try:
            yield "a"
            yield NodeEvent("n", "f", "log", "run-1", {"message": "m"})
            yield last
            yield "never"
        finally:
            closed.append(True)

    value, events = await streamed(f)
    assert value == given
    assert [kind for kind, _ in events] == ["delta", "log"]
    assert closed == [True]


def test_the_type_name_defaults_to_the_function_name_in_the_default_registry() -> None:
    async def planwave_test_default_name() -> None: ...

    node_type = node()(planwave_test_default_name)
    assert default_registry().implementation("planwave_test_default_name") is node_type
    with pytest.raises(ValueError, match="registered already"):
        node()(planwave_test_default_name)
    assert node(replace=True)(planwave_test_default_name) is not node_type


def _generator(input: str) -> Any:
    yield input


async def _starred(*values: str) -> None: ...


async def _odd(input: str, thing: NodeType = 3) -> None: ...  # noqa: F821


async def _text(input: str) -> str:
    return input


class Opaque:
    def method(self, input: str) -> str:
        return input


async def _opaque(thing: Opaque = Opaque()) -> None: ...  # noqa: B008


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (_generator, {}, "is a generator; to stream, declare it with 'async def'"),
        (functools.partial(shout, times=2), {}, "is not a function"),
        (_starred, {}, "parameter 'values' cannot be filled by name"),
        (_opaque, {}, "must have a JSON type"),
        (Opaque.method, {}, "node type 'f' is a method; declare a function"),
        (shout, {"inputs": ["text"]}, "called 'text'"),
        (shout, {"templates": ["input"]}, "called 'input'"),
    ],
)
def test_a_function_that_cannot_be_a_node_is_rejected_with_the_reason(
    function: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        node("f", registry=Registry(), **options)(function)


def test_an_effect_that_does_not_exist_is_rejected() -> None:
    message = "node type 'f': effect is 'none', 'read', 'write' or 'once', not 'reads'"
    with pytest.raises(ValueError, match=message):
        node("f", registry=Registry(), effect="reads")(_text)  # type: ignore[arg-type]


def test_an_annotation_that_names_nothing_is_refused_where_the_function_is_declared() -> None:
    async def gone(input: str) -> Unknown: ...  # type: ignore[name-defined]  # noqa: F821

    for function, where in [(_odd, "'NodeType' of parameter 'thing'"), (gone, "'Unknown' of the")]:
        with pytest.raises(TypeError, match=f"node type 'f': the annotation {where}"):
            FunctionNode(function, "f")


def test_an_annotation_may_name_what_is_local_to_the_caller() -> None:
    class Local(BaseModel):
        size: int

    async def measure(input: Local) -> Local:
        return input

    assert FunctionNode(measure, "f").outputs[0].type == "json"


def test_a_function_may_declare_the_version_of_its_type() -> None:
    registry = Registry()

    @node("second", version=2, registry=registry)
    async def second() -> str:
        return "2"

    facts = registry.type_info("second")
    assert facts is not None
    assert (facts.version, facts.reads_goal) == (2, False)


@pytest.mark.parametrize(
    ("declared", "returned", "message"),
    [
        (str, 3, "the output 'output' is declared as text, but the node returned 3"),
        (str, None, "the output 'output' is declared as text, but the node returned null"),
        (str, ["a"], "the output 'output' is declared as text, but the node returned an array"),
        (int, 0.5, "the output 'output' is declared as integer, but the node returned 0.5"),
        (int, True, "the output 'output' is declared as integer, but the node returned true"),
        (bool, 1, "the output 'output' is declared as boolean, but the node returned 1"),
        (dict[str, int], "x", "the result has to be an object, not text"),
        (float | None, "x", "the result has to be a number, not text"),
    ],
)
async def test_a_result_of_another_type_than_declared_fails_the_node(
    declared: Any, returned: Any, message: str
) -> None:
    async def f(input: Any) -> Any:
        return returned

    f.__annotations__["return"] = declared
    with pytest.raises(NodeError) as caught:
        await result_and_events(FunctionNode(f, "f").execute({}, make_inputs(1), context_for(NODE)))
    assert (caught.value.code, caught.value.message) == ("invalid-result", message)
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("return ")
    assert not caught.value.retryable


@pytest.mark.parametrize(
    ("declared", "returned"),
    [
        (float, 3), (str | None, None), (str | None, "x"), (None, None), (str | int, 3), (Any, 3),
        (Literal["a"], "a"), (list[int], [1]), (tuple[int, int], [1, 2]), (list[int], (1,)),
    ],
)  # fmt: skip
async def test_a_result_that_fits_the_declared_type_is_taken(declared: Any, returned: Any) -> None:
    async def f(input: Any) -> Any:
        return returned

    f.__annotations__["return"] = declared
    result, _ = await result_and_events(
        FunctionNode(f, "f").execute({}, make_inputs(1), context_for(NODE))
    )
    given = result.outputs["output"].value
    assert given == (list(returned) if isinstance(returned, tuple) else returned)


async def test_a_function_that_may_have_forgotten_to_return_fails_the_node() -> None:
    @node(registry=Registry())
    async def forgetful(input: str):
        input.upper()

    @node(registry=Registry())
    def silent(input: str) -> None:
        input.upper()

    @node(registry=Registry())
    async def explicit(input: str):
        return Result(None)

    with pytest.raises(PermanentError) as caught:
        await output(forgetful, make_inputs("x"))
    assert (caught.value.code, caught.value.message, caught.value.hint) == (
        "invalid-result",
        "the function 'forgetful' returned nothing",
        "add the missing 'return'; for a node without a result, declare '-> None'",
    )
    assert (await output(silent, make_inputs("x"))).value is None
    assert (await output(explicit, make_inputs("x"))).value is None


def test_a_decorator_stands_alone_or_has_arguments() -> None:
    @planwave.node
    async def planwave_test_bare_node(input: str) -> str:
        return input

    assert planwave_test_bare_node.node_type == "planwave_test_bare_node"
    with pytest.raises(TypeError, match="a node type is named by text, not 3"):
        node(3)  # type: ignore[call-overload]


class Invoice(BaseModel):
    cents: int
    lines: list[Invoice] = []


async def bill(input: Invoice, others: Collected[Invoice]) -> list[Invoice]:
    return [input, *others]


async def test_a_list_input_takes_one_list_and_collected_several_edges() -> None:
    async def one(input: list[Invoice]) -> Any:
        return [each.cents for each in input]

    assert FunctionNode(one, "f").inputs[0].multiple is False
    assert (await output(one, make_inputs([{"cents": 1}, {"cents": 2}]))).value == [1, 2]
    several = make_inputs(
        ("input", {"cents": 0}), ("others", {"cents": 1}), ("others", {"cents": 2})
    )
    assert FunctionNode(bill, "f").inputs[1].multiple
    assert [each["cents"] for each in (await output(bill, several)).value] == [0, 1, 2]


def test_ports_have_the_schema_of_their_values() -> None:
    registry = Registry([FunctionNode(bill, "f"), FunctionNode(shout, "g")])
    document = registry.describe("f")
    first, others = document["inputs"]
    assert first["schema"] == others["schema"]
    assert first["schema"]["$defs"]["Invoice"]["required"] == ["cents"]
    assert document["outputs"][0]["schema"]["items"] == {"$ref": "#/$defs/Invoice"}
    assert not any("schema" in port for port in registry.describe("g")["inputs"])
    (card,) = type_cards(registry, ["f"])
    invoice = "{cents: integer, lines: list of Invoice}"
    assert card.inputs == [f"input ({invoice})", f"others ({invoice})"]
    assert card.outputs == [f"output (list of {invoice})"]


def test_a_type_may_declare_the_policy_of_its_nodes() -> None:
    retry = Retry(3, 2, on=[ConnectionError], not_on=["no-stock"])
    declared = FunctionNode(shout, "f", retry=retry, timeout_s=30)
    assert declared.policy == {
        "retry": {
            "attempts": 3, "backoffS": 2, "on": ["ConnectionError"], "notOn": ["no-stock"],
        },
        "timeoutS": 30,
    }  # fmt: skip
    assert Registry([declared]).describe("f")["policy"] == declared.policy
    assert FunctionNode(shout, "f").policy == {}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"retry": Retry(attempts=99)}, "policy_attempts"),
        ({"retry": Retry(backoff_s=1e6)}, "policy_backoff_s"),
        ({"retry": Retry(attempts=0)}, "policy.retry.attempts is 0, must be a whole number"),
        ({"timeout_s": 0}, "policy.timeoutS is 0, must be seconds above 0"),
        ({"timeout_s": 1e9}, "policy_timeout_s"),
    ],
)
def test_a_policy_that_no_document_may_have_is_refused_at_the_decorator(
    options: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=f"node type 'f'.*{message}"):
        FunctionNode(shout, "f", **options)


def test_retries_are_declared_by_an_object_and_name_errors() -> None:
    with pytest.raises(TypeError, match=r"node type 'f': retry is a planwave\.Retry"):
        FunctionNode(shout, "f", retry=3)  # type: ignore[arg-type]
    for wrong in ([3], 3, [ConnectionError()]):
        with pytest.raises(
            TypeError, match=r"an exception class is expected|exception classes are"
        ):
            Retry(on=wrong)  # type: ignore[arg-type]


def test_help_shows_what_a_decorator_takes() -> None:
    shown, read = signature(planwave.node).parameters, signature(FunctionNode).parameters
    assert {name: (p.kind, p.default) for name, p in shown.items()}.items() >= {
        name: (p.kind, p.default) for name, p in read.items() if p.kind is p.KEYWORD_ONLY
    }.items()


def test_a_graph_without_a_service_is_held_to_the_limits_of_policies_too() -> None:
    policy, _ = read_policy({"retry": {"attempts": 99}}, "")
    eager = Node("n", "f", "N", policy=policy)
    (diagnostic,) = Registry([FunctionNode(shout, "f")]).check(eager, Graph((eager,), ()))
    assert (diagnostic.code, diagnostic.pointer) == ("limit-exceeded", "/policy/retry/attempts")
