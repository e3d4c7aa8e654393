from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import pytest

from planwave.errors import PermanentError
from planwave.graph.model import Effect, Graph, Node, Policy
from planwave.graph.protocols import (
    EffectByField,
    FlowContext,
    NodeTypeInfo,
    RuntimeApi,
    effect_of,
    strongest_effect,
)
from tests.support.graph.builders import make_edge


def test_a_context_answers_to_its_former_names_for_one_more_release() -> None:
    def own_work() -> AbstractContextManager[None]:
        return nullcontext()

    context = FlowContext(
        "a", "x1", "a", 1, None, None, cast("RuntimeApi", cast("Any", None)), None,
        time_left_s=lambda: 2.5, own_work=own_work,
    )  # fmt: skip
    assert context.busy is own_work
    assert context.left_s() == 2.5


async def test_a_context_of_no_attempt_refuses_events() -> None:
    context = FlowContext(
        "a", "x1", "a", 1, None, None, cast("RuntimeApi", cast("Any", None)), None
    )  # fmt: skip
    with pytest.raises(PermanentError, match="outside of a running node"):
        context.emit("spark", 1)
    with pytest.raises(PermanentError, match="outside of a running node"):
        await context.record("spark", 1)
    with pytest.raises(PermanentError, match="outside of a running node"):
        context.task_group()


BY_METHOD = EffectByField("method", {"GET": "read", "HEAD": "read"}, absent="read")
WRITES = NodeTypeInfo("t", "", (), (), effect="write", effect_by=BY_METHOD)
UNLESS_SENT = WRITES._replace(effect_by=BY_METHOD._replace(unless="body"))


@pytest.mark.parametrize(
    ("facts", "data", "wired", "policy", "expected"),
    [
        (WRITES, {"method": "GET"}, "", None, "read"),
        (WRITES, {"method": "POST"}, "", None, "write"),
        (WRITES, {}, "", None, "read"),
        (WRITES, {"method": "{{ input }}"}, "", None, "write"),
        (WRITES, {"method": 7}, "", None, "write"),
        (WRITES, {"method": ["GET", "HEAD"]}, "", None, "read"),
        (WRITES, {"method": ["GET", "POST"]}, "", None, "write"),
        (WRITES, {"method": ["GET", 7]}, "", None, "write"),
        (WRITES, {"method": []}, "", None, "none"),
        (WRITES, {"method": "GET"}, "method", None, "write"),
        (WRITES, {"method": "GET"}, "url", None, "read"),
        (WRITES, {"method": "GET"}, "", "once", "once"),
        (WRITES._replace(effect_by=None), {"method": "GET"}, "", None, "write"),
        (UNLESS_SENT, {"method": "GET"}, "", None, "read"),
        (UNLESS_SENT, {"method": "GET", "body": None}, "", None, "write"),
    ],
)
def test_effect_of_a_node_may_depend_on_a_field(
    facts: NodeTypeInfo, data: dict[str, Any], wired: str, policy: Any, expected: str
) -> None:
    node = Node("a", "t", "a", data=data, policy=Policy(effect=policy))
    edges = (make_edge("s", "a", target_handle=wired),) if wired else ()
    assert effect_of(node, facts, Graph((Node("s", "t", "s"), node), edges)) == expected


def test_possible_effects_are_those_of_the_type_and_of_its_field() -> None:
    assert WRITES.possible_effects == {"read", "write"}
    assert NodeTypeInfo("t", "", (), (), effect="once").possible_effects == {"once"}


@pytest.mark.parametrize(
    ("effects", "strongest"),
    [([], "none"), (["read", "none"], "read"), (["write", "once", "read"], "once")],
)
def test_the_strongest_effect_is_the_one_with_the_most_consequences(
    effects: list[Effect], strongest: Effect
) -> None:
    assert strongest_effect(effects) == strongest
