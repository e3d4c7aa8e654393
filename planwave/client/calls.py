"""What can be asked of a service, as plain values: one function for each route."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote

NO_BODY: Final = object()
"""Stands where a request has none; None is JSON's null."""


class RequestSpec(NamedTuple):
    """One request.

    Attributes:
        method: ``GET``, ``POST``, ``PUT`` or ``DELETE``.
        path: Below the service's address.
        query: Without the parameters that are not given.
        body: JSON, or ``NO_BODY``.
        key: ``Idempotency-Key``: sent again, the request gives the same answer once more.
        if_match: The version that what is to be changed has to have.
    """

    method: str
    path: str
    query: Mapping[str, Any] = {}
    body: Any = NO_BODY
    key: str | None = None
    if_match: str | None = None


def get(*path: str, **query: Any) -> RequestSpec:
    """Read something."""
    return RequestSpec("GET", _path(path), _without_none(query))


def post(*path: str, body: Mapping[str, Any] | None = None, key: str | None = None) -> RequestSpec:
    """Have something done."""
    return RequestSpec("POST", _path(path), body=NO_BODY if body is None else _without_none(body), key=key)


def put(*path: str, body: Mapping[str, Any], if_match: str | None) -> RequestSpec:
    """Have something changed."""
    return RequestSpec("PUT", _path(path), body=_without_none(body), if_match=if_match)


def delete(*path: str) -> RequestSpec:
    """Remove something."""
    return RequestSpec("DELETE", _path(path))


def create_plan(
    prompt: str, provider: str | None, model: str | None, key: str | None, *, stream: bool = False
) -> RequestSpec:
    """Plan a goal; ``stream`` has its progress told."""
    body = {"prompt": prompt, "provider": provider, "model": model}
    call = post("api", "plan", body=body, key=key)
    return call._replace(query={"stream": 1}) if stream else call


def execute(
    what: str | Mapping[str, Any],
    inputs: Mapping[str, Any] | None,
    options: Mapping[str, Any] | None,
    start: bool,
    key: str | None,
) -> RequestSpec:
    """Execute a stored plan (its id) or a graph."""
    named = {"plan_id": what} if isinstance(what, str) else {"graph": what}
    body = {**named, "inputs": inputs, "options": options, "start": start}
    return post("api", "execute", body=body, key=key)


def execute_flow(
    flow_id: str,
    version: str | None,
    inputs: Mapping[str, Any] | None,
    options: Mapping[str, Any] | None,
    start: bool,
    key: str | None,
) -> RequestSpec:
    """Execute a flow, or one of its versions."""
    named = {"flow_id": flow_id, "version": version}
    body = {**named, "inputs": inputs, "options": options, "start": start}
    return post("api", "execute", body=body, key=key)


def run(
    prompt: str,
    provider: str | None,
    model: str | None,
    inputs: Mapping[str, Any] | None,
    options: Mapping[str, Any] | None,
    key: str | None,
) -> RequestSpec:
    """Plan a goal and run the plan."""
    body = {
        "prompt": prompt,
        "provider": provider,
        "model": model,
        "inputs": inputs,
        "options": options,
    }
    return post("api", "run", body=body, key=key)


def answer(execution_id: str, request_id: str, given: Any) -> RequestSpec:
    """Answer a request; of the answer everything is sent, nulls too."""
    path = _path(("api", "executions", execution_id, "requests", request_id))
    return RequestSpec("POST", path, body=given)


def cancel(execution_id: str, cause: str | None, node: str | None) -> RequestSpec:
    """Stop an execution, or one node of it."""
    return post("api", "executions", execution_id, "cancel", body={"cause": cause, "node": node})


def fork(
    execution_id: str,
    rerun: Sequence[str],
    changes: Mapping[str, Any] | None,
    options: Mapping[str, Any] | None,
    start: bool,
    key: str | None,
) -> RequestSpec:
    """Make a changed execution out of one."""
    body = {"rerun": list(rerun), "changes": changes, "options": options, "start": start}
    return post("api", "executions", execution_id, "fork", body=body, key=key)


def _path(parts: tuple[str, ...]) -> str:
    return "/" + "/".join(quote(part, safe="") for part in parts)


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
