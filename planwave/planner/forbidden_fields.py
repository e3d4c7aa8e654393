"""Names that no plan holds anywhere: credentials, addresses of services, commands, a weaker effect.

A planner is a model that reads hostile text; its plan may choose among the credentials and
addresses that the operator set up, and sets up none itself. The values are kept out of messages, logs and records.
Which fields of a node type a plan may set is another question: see ``plan_check.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from planwave.graph.diagnostics import Diagnostic
from planwave.graph.model import Json
from planwave.planner.reply_schema import pointer_of

REDACTED = "[withheld]"

_CREDENTIAL = "refer to a credential by the name the operator gave it"
_SERVICE = "name a provider that is configured; its address is the operator's"
_COMMAND = "name a server that the operator registered; a plan runs no commands"
_APPROVAL = "approvals are answered by people"
_POLICY = "a plan cannot lower a step's side-effect class"

_REASONS = {
    **dict.fromkeys(
        (
            "apikey",
            "apikeyenv",
            "apitoken",
            "accesstoken",
            "authtoken",
            "bearertoken",
            "secret",
            "secretkey",
            "clientsecret",
            "privatekey",
            "password",
            "passwd",
            "authorization",
            "credentials",
        ),
        _CREDENTIAL,
    ),
    **dict.fromkeys(("baseurl", "apibase", "apibaseurl"), _SERVICE),
    **dict.fromkeys(("command", "env", "cwd"), _COMMAND),
    **dict.fromkeys(("autoapprove", "autoapproved"), _APPROVAL),
}


def redact_forbidden(value: Json) -> tuple[Json, Json, list[Diagnostic]]:
    """Take forbidden fields out of a reply.

    Returns:
        The reply without them, the reply with ``REDACTED`` in place of their values (to be
        kept and shown), and one error for each, which does not hold the value.
    """
    findings: list[Diagnostic] = []
    _find_forbidden(value, (), findings)
    if not findings:
        return value, value, findings
    return (
        _redact(value, (), as_placeholder=False),
        _redact(value, (), as_placeholder=True),
        findings,
    )


def _reason(key: str, path: Sequence[str | int]) -> str | None:
    plain = key.lower().replace("_", "").replace("-", "")
    if plain == "effect" and path and path[-1] == "policy":
        return _POLICY
    return _REASONS.get(plain)


def _find_forbidden(value: Json, path: tuple[str | int, ...], findings: list[Diagnostic]) -> None:
    if isinstance(value, list):
        for index, item in enumerate(cast("list[Json]", value)):
            _find_forbidden(item, (*path, index), findings)
    elif isinstance(value, dict):
        for key, item in cast("dict[str, Json]", value).items():
            if reason := _reason(key, path):
                pointer = pointer_of((*path, key))
                message = f"a plan may not set {key!r} (at {pointer})"
                findings.append(
                    Diagnostic("forbidden-field", "error", message, pointer, hint=reason)
                )
            else:
                _find_forbidden(item, (*path, key), findings)


def _redact(value: Json, path: tuple[str | int, ...], *, as_placeholder: bool) -> Json:
    if isinstance(value, list):
        items = cast("list[Json]", value)
        return [
            _redact(item, (*path, i), as_placeholder=as_placeholder) for i, item in enumerate(items)
        ]
    if not isinstance(value, dict):
        return value
    fields: dict[str, Json] = {}
    for key, item in cast("dict[str, Json]", value).items():
        if _reason(key, path) is None:
            fields[key] = _redact(item, (*path, key), as_placeholder=as_placeholder)
        elif as_placeholder:
            fields[key] = REDACTED
    return fields
