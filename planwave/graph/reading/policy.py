"""Read a node's policy strictly, with a pointer for each error, and check it against the limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast, get_args

from planwave.graph.diagnostics import Diagnostic, limit_exceeded, short_repr
from planwave.graph.json_values import pointer_part
from planwave.graph.model import Effect, Join, Json, Node, OnError, Policy, Retry

if TYPE_CHECKING:
    from planwave.settings import Limits

POLICY_FIELDS: Final = ("join", "retry", "timeoutS", "onError", "default", "effect")
_RETRY_FIELDS: Final = ("attempts", "backoffS", "on", "notOn")


def read_policy(
    document: Mapping[str, Json], pointer: str, node_id: str = ""
) -> tuple[Policy, list[Diagnostic]]:
    """Read ``{join?, retry?, timeoutS?, onError?, default?, effect?}``.

    ``retry`` is ``{attempts?, backoffS?, on?, notOn?}``. A null field is the same as a missing one.

    Args:
        document: The policy.
        pointer: JSON pointer of the policy.
        node_id: Named in the messages.

    Returns:
        The policy and its errors; invalid fields have their default.
    """
    findings = _PolicyFindings(pointer, f"node {node_id!r}: " if node_id else "")
    findings.check_known_fields(document, POLICY_FIELDS, "")
    on_error = findings.read_choice(document, "onError", get_args(OnError), "fail")
    is_certain = not findings.errors  # after an error, onError may be meant to be another
    join = findings.read_choice(document, "join", get_args(Join), "all")
    effect = findings.read_choice(document, "effect", get_args(Effect), None)
    timeout = document.get("timeoutS")
    if timeout is not None and not (_is_number(timeout) and timeout > 0):
        findings.add("/timeoutS", f"is {short_repr(timeout)}, must be seconds above 0")
        timeout = None
    retry = _read_retry(document.get("retry"), findings)
    default = _read_default(document.get("default"), on_error if is_certain else None, findings)
    return Policy(join, retry, timeout, on_error, default, effect), findings.errors


def policy_limit_findings(node: Node, limits: Limits) -> list[Diagnostic]:
    """Return a finding for each value of a policy over its limit; pointers are relative to the node."""
    policy, retry = node.policy, node.policy.retry
    values = (
        ("policy_timeout_s", limits.policy_timeout_s, policy.timeout_s or 0, "timeoutS"),
        ("policy_attempts", limits.policy_attempts, retry.attempts, "retry/attempts"),
        ("policy_backoff_s", limits.policy_backoff_s, retry.backoff_s, "retry/backoffS"),
    )
    return [
        limit_exceeded(
            limit,
            maximum,
            actual,
            f"node {node.id!r}: {field}",
            f"/policy/{field}",
            hint=f"use at most {maximum:g}",
        )
        for limit, maximum, actual, field in values
        if actual > maximum
    ]


class _PolicyFindings:
    """Collects the errors below one pointer; ``label`` begins their messages."""

    def __init__(self, pointer: str, label: str) -> None:
        self.pointer, self._label = pointer, label
        self.errors: list[Diagnostic] = []

    def add(
        self, below: str, message: str, code: str = "invalid-field", *, hint: str | None = None
    ) -> None:
        """Add an error; the message goes on from the path of the field."""
        field = below.replace("/", ".")
        message = f"{self._label}policy{field} {message}"
        self.errors.append(Diagnostic(code, "error", message, self.pointer + below, hint=hint))

    def check_known_fields(
        self, document: Mapping[str, Json], allowed: tuple[str, ...], below: str
    ) -> None:
        for name in document:
            if name not in allowed:
                field = below.replace("/", ".")
                message = (
                    f"{self._label}policy{field} has the unknown field {short_repr(name)}; "
                    f"known are {', '.join(allowed)}"
                )
                pointer = f"{self.pointer}{below}/{pointer_part(name)}"
                self.errors.append(Diagnostic("unknown-field", "error", message, pointer))

    def read_choice(
        self, document: Mapping[str, Json], name: str, choices: tuple[str, ...], missing: Any
    ) -> Any:
        value = document.get(name)
        if value is None:
            return missing
        if value not in choices:
            self.add(f"/{name}", f"is {short_repr(value)}, must be one of {', '.join(choices)}")
            return missing
        return value

    def read_object(
        self, value: Json, name: str, allowed: tuple[str, ...]
    ) -> Mapping[str, Json] | None:
        """Return an object's fields, or None after reporting an error if it is not an object."""
        if not isinstance(value, dict):
            self.add(f"/{name}", f"is {short_repr(value)}, must be an object")
            return None
        document = cast("dict[str, Json]", value)
        self.check_known_fields(document, allowed, f"/{name}")
        return document


def _is_number(value: Json) -> bool:
    return type(value) in (int, float)


def _read_retry(value: Json, findings: _PolicyFindings) -> Retry:
    if value is None or (fields := findings.read_object(value, "retry", _RETRY_FIELDS)) is None:
        return Retry()
    attempts = 1 if fields.get("attempts") is None else fields["attempts"]
    if type(attempts) is not int or attempts < 1:
        message = f"is {short_repr(attempts)}, must be a whole number from 1 up"
        findings.add("/retry/attempts", message)
        attempts = 1
    backoff = 0.0 if fields.get("backoffS") is None else fields["backoffS"]
    if not _is_number(backoff) or backoff < 0:
        findings.add("/retry/backoffS", f"is {short_repr(backoff)}, must be seconds from 0 up")
        backoff = 0.0
    return Retry(
        attempts,
        backoff,
        _read_names(fields, "on", findings),
        _read_names(fields, "notOn", findings),
    )


def _read_names(
    fields: Mapping[str, Json], name: str, findings: _PolicyFindings
) -> tuple[str, ...]:
    names: Json = fields.get(name)
    if names is None:
        return ()
    if isinstance(names, list):
        listed = cast("list[Json]", names)
        if all(isinstance(each, str) and each for each in listed):
            return tuple(listed)
    findings.add(
        f"/retry/{name}",
        f"is {short_repr(fields[name])}, must be a list of error codes or exception names",
        hint=f"write [{names!r}]" if isinstance(names, str) and names else None,
    )
    return ()


def _read_default(
    value: Json, on_error: str | None, findings: _PolicyFindings
) -> Mapping[str, Json] | None:
    """Read a default; ``on_error`` is None if the intended value is not known."""
    if value is None:
        if on_error == "default":
            findings.add("/default", "is missing, but onError is 'default'", "missing-field")
        return None
    before = len(findings.errors)
    if on_error not in ("default", None):
        findings.add("/default", f"is only used with onError 'default', not {on_error!r}")
    fields = findings.read_object(value, "default", ("handle", "value"))
    if fields is not None:
        for name in ("handle", "value"):
            if name not in fields:
                findings.add(f"/default/{name}", "is missing", "missing-field")
        handle = fields.get("handle", "")
        if not isinstance(handle, str) or ("handle" in fields and not handle):
            findings.add("/default/handle", f"is {short_repr(handle)}, must be a name")
    return fields if len(findings.errors) == before else None
