"""What a workflow of Sandcastle says beside its prompts: models, retries, and what has no counterpart."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

from planwave.graph.json_values import pointer_part
from planwave.interop.importing.conversion import Conversion, SourceNode
from planwave.interop.importing.reading import list_of, number_of, object_of, text_of

_PROVIDER: Final = "anthropic"
_MODELS: Final[Mapping[str, str]] = {
    "": "claude-sonnet-5-5",
    "haiku": "claude-haiku-5-5",
    "sonnet": "claude-sonnet-5-5",
    "opus": "claude-opus-5-5",
}
"""The short names of models, and those that planwave knows for them."""
_MOST_ATTEMPTS: Final = 10
_LONGEST_TIMEOUT_S: Final = 86_400
_DEFAULT_ATTEMPTS: Final = 3
_BACKOFF_S: Final = 2
"""Seconds before the second attempt, there and here; they double before each other one."""

_LOST_OF_STEP: Final[Mapping[str, str]] = {
    "csv_output": "no file is written here: the result is in the run",
    "pdf_report": "no report is written here: the result is in the run",
    "autopilot": "models and prompts are not tried against each other here",
    "slo": "models are not chosen by cost and time here",
    "model_pool": "models are not chosen by cost and time here",
    "tools": "connectors are not carried over: link tools to the agent",
    "memory": "no memory is shared between runs here",
    "output_max_tokens": "outputs are not cut here",
}
"""Settings that a step runs without, each with what that means."""
_NEEDED_BY_STEP: Final[Mapping[str, str]] = {
    "fallback": "a step has no second prompt for failures here",
    "context_query": "what is found for a query is not added to prompts here",
    "sub_workflow": "its workflow is another file: import that as a flow, and name it in an inner",
}
"""Settings without which a step would do something else."""
_READ_OF_STEP: Final = frozenset(
    {
        "id", "type", "name", "description", "prompt", "model", "depends_on", "parallel_over", "output_schema",
        "approval_config", "max_turns", "retry", "timeout", "policies",
    }
)  # fmt: skip
"""Settings that are carried over, or have no bearing on what a step does."""
_DECIDING: Final = frozenset(
    {
        "if", "when", "unless", "condition", "conditions", "enabled", "disabled", "skip", "skip_if", "run_if",
        "foreach", "for_each", "loop", "while", "until", "repeat",
    }
)  # fmt: skip
"""Names of settings that say whether, or how often, a step runs; none is known of the format."""
_GUARDS: Final = frozenset({"redact", "inject_approval", "block"})
"""Actions of policies that keep a step from doing harm: without them it may not run."""
_LOST_OF_WORKFLOW: Final[Mapping[str, tuple[str, str]]] = {
    "on_complete": (
        "nothing is stored or sent at the end of a run",
        "set up notifications of the flow",
    ),
    "schedule": ("runs are not started by a time", "add a schedule to the flow"),
    "policies": ("policies are not applied", "look for what they guard"),
    "default_tools": ("connectors are not carried over", "link tools to the agents"),
    "memory": ("no memory is shared between runs", "write what is to be known into the input"),
    "privacy": ("nothing is taken out of what models are sent", "look for what it guards"),
}


class Model(NamedTuple):
    """Who runs a step."""

    provider: str
    name: str


class StepPolicy(NamedTuple):
    """The policy of a step.

    Attributes:
        fields: ``{timeoutS?, retry?}``.
        goes_on: Whether the run goes on without a result where all attempts failed.
    """

    fields: dict[str, Any]
    goes_on: bool


def model_of(written: str) -> Model:
    """Return provider and model of a short name, or of ``provider/model``."""
    if written in _MODELS:
        return Model(_PROVIDER, _MODELS[written])
    provider, slash, name = written.partition("/")
    return Model(provider, name) if slash and provider and name else Model(_PROVIDER, written)


def policy_of(
    node: SourceNode, fields: Mapping[str, Any], document: Mapping[str, Any]
) -> StepPolicy:
    """Return timeout and retries of a step.

    Args:
        node: Its entry in the report.
        fields: What is written of it.
        document: The workflow, which has the defaults.
    """
    policy: dict[str, Any] = {}
    timeout = number_of(fields, "timeout") or number_of(document, "default_timeout")
    if timeout is not None and timeout > 0:
        policy["timeoutS"] = min(timeout, _LONGEST_TIMEOUT_S)
    retry = object_of(fields, "retry")
    if retry:
        attempts = int(number_of(retry, "max_attempts") or _DEFAULT_ATTEMPTS)
        policy["retry"] = {
            "attempts": max(1, min(attempts, _MOST_ATTEMPTS)),
            "backoffS": _BACKOFF_S,
        }
        if attempts > _MOST_ATTEMPTS:
            message = f"it is tried {_MOST_ATTEMPTS} times at most, not {attempts} times"
            node.change(message, f"{node.pointer}/retry/max_attempts")
    goes_on = retry and text_of(retry, "on_failure") not in ("", "abort")
    dead_letter = object_of(document, "on_failure").get("dead_letter") is True
    return StepPolicy(policy, bool(goes_on) or dead_letter)


def note_settings_of_step(
    conversion: Conversion, node: SourceNode, fields: Mapping[str, Any]
) -> None:
    """Say which settings of a step have no counterpart; one that it needs makes it a placeholder."""
    for name, message in _LOST_OF_STEP.items():
        if fields.get(name):
            conversion.lose(f"{node.pointer}/{name}", message, _short(fields[name]))
            node.change(message, f"{node.pointer}/{name}", code="import-ignored")
    for name, message in _NEEDED_BY_STEP.items():
        if fields.get(name):
            node.lose(message, _short(fields[name]), f"{node.pointer}/{name}")
    for name in sorted(
        fields.keys() - _READ_OF_STEP - _LOST_OF_STEP.keys() - _NEEDED_BY_STEP.keys()
    ):
        pointer, message = (
            f"{node.pointer}/{pointer_part(name)}",
            f"its setting {name!r} is not known here",
        )
        if name in _DECIDING:
            node.lose(message, _short(fields[name]), pointer)
        elif fields[name] not in (None, "", [], {}):
            node.change(message, pointer, code="import-ignored")
    if _guards(fields):
        message = "a policy guards it, and policies are not applied here"
        node.lose(message, _short(fields["policies"]), f"{node.pointer}/policies")


def note_settings_of_workflow(conversion: Conversion, document: Mapping[str, Any], at: str) -> None:
    """Say what of a workflow as a whole has no counterpart."""
    for name, (message, hint) in _LOST_OF_WORKFLOW.items():
        if document.get(name):
            pointer = f"{at}/{name}"
            conversion.lose(pointer, message, _short(document[name]))
            conversion.note("import-ignored", f"{message} here", pointer, hint)
    failing = object_of(document, "on_failure")
    if failing:
        message = "failed runs are not reported or stored apart"
        conversion.lose(f"{at}/on_failure", message, _short(failing))
        conversion.note("import-ignored", f"{message} here", f"{at}/on_failure")
    if _guards(document):
        for node in conversion.nodes[1:]:
            message = "a policy of the workflow guards it, and policies are not applied here"
            node.lose(message, _short(document["policies"]), f"{at}/policies")
    message = (
        "each prompt goes to the model alone: there instructions of the program stand before it, and steps "
        "can run commands and read files in a sandbox"
    )
    conversion.note("import-changed", message, at, "link tools to the agents that need them")


def _guards(fields: Mapping[str, Any]) -> bool:
    """Return whether one of the policies keeps a step from doing harm; a name may be of such a one."""
    for policy in list_of(fields, "policies"):
        if not isinstance(policy, dict):
            return True
        if text_of(object_of(cast("dict[str, Any]", policy), "action"), "type") in _GUARDS:
            return True
    return False


def _short(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
