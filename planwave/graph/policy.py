"""Reading a node's policy: strict, every fault with its own pointer; and holding it to limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast, get_args

from planwave.graph.diagnostics import Diagnostic, limit_exceeded
from planwave.graph.json_values import pointer_part, shown
from planwave.graph.model import Effect, Join, Json, Node, OnError, Policy, Retry

if TYPE_CHECKING:
    from planwave.settings import Limits

_FIELDS: Final = ("join", "retry", "timeoutS", "onError", "default", "effect")


def read_policy(document: Mapping[str, Json], pointer: str) -> tuple[Policy, list[Diagnostic]]:
    """Read ``{join?, retry?: {attempts?, backoffS?}, timeoutS?, onError?, default?, effect?}``.

    A null field is the same as a missing one.

    Returns:
        The policy and its faults; what is at fault has its default.
    """
    faults = _Faults(pointer)
    faults.only(document, _FIELDS, "")
    on_error = faults.choice(document, "onError", get_args(OnError), "fail")
    is_certain = not faults.found  # else it may be meant to be another
    join = faults.choice(document, "join", get_args(Join), "all")
    effect = faults.choice(document, "effect", get_args(Effect), None)
    timeout = document.get("timeoutS")
    if timeout is not None and not (_is_number(timeout) and timeout > 0):
        faults.add("/timeoutS", f"timeoutS is {shown(timeout)}, must be seconds above 0")
        timeout = None
    retry = _read_retry(document.get("retry"), faults)
    default = _read_default(document.get("default"), on_error if is_certain else None, faults)
    return Policy(join, retry, timeout, on_error, default, effect), faults.found


def passed_limits(node: Node, limits: Limits) -> list[Diagnostic]:
    """Find what a node's policy asks for beyond the limits; pointers are relative to the node."""
    policy, retry = node.policy, node.policy.retry
    asked = (
        ("policy_timeout_s", limits.policy_timeout_s, policy.timeout_s or 0, "timeoutS"),
        ("policy_attempts", limits.policy_attempts, retry.attempts, "retry/attempts"),
        ("policy_backoff_s", limits.policy_backoff_s, retry.backoff_s, "retry/backoffS"),
    )
    return [
        limit_exceeded(
            limit,
            most,
            met,
            f"node {node.id!r}: {field}",
            f"/policy/{field}",
            hint=f"ask for {most:g} at most",
        )
        for limit, most, met, field in asked
        if met > most
    ]


class _Faults:
    """Collects what is wrong below one pointer."""

    def __init__(self, pointer: str) -> None:
        self.pointer = pointer
        self.found: list[Diagnostic] = []

    def add(self, below: str, message: str, code: str = "invalid-field") -> None:
        self.found.append(Diagnostic(code, "error", message, f"{self.pointer}{below}"))

    def only(self, document: Mapping[str, Json], allowed: tuple[str, ...], below: str) -> None:
        for name in document:
            if name not in allowed:
                message = f"unknown field {shown(name)}; known are {', '.join(allowed)}"
                self.add(f"{below}/{pointer_part(name)}", message, "unknown-field")

    def choice(
        self, document: Mapping[str, Json], name: str, choices: tuple[str, ...], missing: Any
    ) -> Any:
        value = document.get(name)
        if value is None:
            return missing
        if value not in choices:
            self.add(f"/{name}", f"{name} is {shown(value)}, must be one of {', '.join(choices)}")
            return missing
        return value

    def fields(self, value: Json, name: str, allowed: tuple[str, ...]) -> Mapping[str, Json] | None:
        """Give an object's fields, or None (with a fault) where it is no object."""
        if not isinstance(value, dict):
            self.add(f"/{name}", f"{name} is {shown(value)}, must be an object")
            return None
        document = cast("dict[str, Json]", value)
        self.only(document, allowed, f"/{name}")
        return document


def _is_number(value: Json) -> bool:
    return type(value) in (int, float)


def _read_retry(value: Json, faults: _Faults) -> Retry:
    if value is None or (fields := faults.fields(value, "retry", ("attempts", "backoffS"))) is None:
        return Retry()
    attempts = 1 if fields.get("attempts") is None else fields["attempts"]
    if type(attempts) is not int or attempts < 1:
        message = f"attempts is {shown(attempts)}, must be a whole number from 1 up"
        faults.add("/retry/attempts", message)
        attempts = 1
    backoff = 0.0 if fields.get("backoffS") is None else fields["backoffS"]
    if not _is_number(backoff) or backoff < 0:
        faults.add("/retry/backoffS", f"backoffS is {shown(backoff)}, must be seconds from 0 up")
        backoff = 0.0
    return Retry(attempts, backoff)


def _read_default(value: Json, on_error: str | None, faults: _Faults) -> Mapping[str, Json] | None:
    """Read a default; ``on_error`` is None where it is not known what was meant."""
    if value is None:
        if on_error == "default":
            faults.add("/default", "onError is 'default' but default is missing", "missing-field")
        return None
    before = len(faults.found)
    if on_error not in ("default", None):
        faults.add("/default", f"default is only used with onError 'default', not {on_error!r}")
    fields = faults.fields(value, "default", ("handle", "value"))
    if fields is not None:
        for name in ("handle", "value"):
            if name not in fields:
                faults.add(f"/default/{name}", f"default needs {name!r}", "missing-field")
        handle = fields.get("handle", "")
        if not isinstance(handle, str) or ("handle" in fields and not handle):
            faults.add("/default/handle", f"handle is {shown(handle)}, must be a name")
    return fields if len(faults.found) == before else None
