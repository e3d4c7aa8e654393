"""What follows a failure of a step: Dify's retries and error strategies as policies."""

from __future__ import annotations

from typing import Any, Final

from planwave.interop.importing.dify.steps import FAIL_BRANCH, Step
from planwave.interop.importing.dify.values import Read
from planwave.interop.importing.reading import number_of, object_of, objects_in, text_of
from planwave.interop.importing.templates import output_of

_MAX_ATTEMPTS: Final = 10
_MAX_BACKOFF_S: Final = 600.0


def policy_of(step: Step, output: str) -> dict[str, Any]:
    """Return the policy of a step, and note what differs.

    Args:
        step: The step.
        output: The output there whose default value leaves, such as ``text``.
    """
    policy: dict[str, Any] = {}
    if (retry := _retry(step)) is not None:
        policy["retry"] = retry
    strategy = text_of(step.data, "error_strategy")
    if strategy == "default-value":
        policy |= _default(step, output)
    elif strategy == FAIL_BRANCH:
        if _has_failure_edge(step):
            policy["onError"] = "continue"
        else:
            step.node.change("no edge leads on from its failure, which fails the run here")
    elif strategy not in ("", "none"):
        step.lose("this error strategy is not known", strategy, "/error_strategy")
    return policy


def offer_failure(step: Step) -> None:
    """Offer the branch of a failure, where the policy of the step has one."""
    main = step.main
    if object_of(main.node, "policy").get("onError") != "continue":
        return
    step.exits[FAIL_BRANCH] = [(main, "error")]
    step.outputs["error_message"] = Read(output_of(main.id, "error", ["message"]), kind="text")
    step.outputs["error_type"] = Read(output_of(main.id, "error", ["code"]), kind="text")


def _has_failure_edge(step: Step) -> bool:
    edges = step.app.edges.get(step.scope.region, ())
    return any(edge.source is step and edge.handle == FAIL_BRANCH for edge in edges)


def _retry(step: Step) -> dict[str, Any] | None:
    retry = object_of(step.data, "retry_config")
    if retry.get("retry_enabled") is not True:
        return None
    attempts = int(min(max(number_of(retry, "max_retries") or 1, 1), 1_000)) + 1
    if attempts > _MAX_ATTEMPTS:
        step.node.change(f"it is tried at most {_MAX_ATTEMPTS} times here, not {attempts} times")
    interval_s = min(max(number_of(retry, "retry_interval") or 0, 0) / 1_000, _MAX_BACKOFF_S)
    if interval_s and attempts > 2:
        step.node.change("the wait before another attempt doubles each time here")
    return {"attempts": min(attempts, _MAX_ATTEMPTS), "backoffS": interval_s}


def _default(step: Step, output: str) -> dict[str, Any]:
    defaults = {text_of(each, "key"): each.get("value") for _, each in
                objects_in(step.data, "default_value")}  # fmt: skip
    if step.kind == "code":
        value: Any = defaults
    elif output in defaults:
        value = defaults[output]
    else:
        step.lose("its default value has no counterpart", defaults, "/default_value")
        return {}
    return {"onError": "default", "default": {"handle": "output", "value": value}}
