from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

from planwave.graph.protocols import FlowContext, RuntimeApi


def test_a_context_answers_to_its_former_names_for_one_more_release() -> None:
    def own_work() -> AbstractContextManager[None]:
        return nullcontext()

    context = FlowContext(
        "a", "x1", "a", 1, None, None, cast("RuntimeApi", cast("Any", None)), None,
        time_left_s=lambda: 2.5, own_work=own_work,
    )  # fmt: skip
    assert context.busy is own_work
    assert context.left_s() == 2.5
