"""Findings about node policies that do not fit the graph: missing edges and handles, unused retries."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from planwave.errors import PermanentError
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.model import DEFAULT_POLICY, ERROR_HANDLE, LINK, Graph, Node, Retry
from planwave.graph.ports import find_output
from planwave.graph.protocols import NodeTypeInfo
from planwave.graph.topology import materialized_ids


def check_policies(
    graph: Graph, type_infos: Mapping[str, NodeTypeInfo | None], handled: Collection[str]
) -> list[Diagnostic]:
    """Return the findings about policies.

    Args:
        graph: Any graph.
        type_infos: The facts about each type of the graph; None for an unknown type.
        handled: Ids of the nodes that an edge leaves through the handle ``error``.
    """
    findings: list[Diagnostic] = []
    retries: list[tuple[int, Node]] = []
    for number, node in enumerate(graph.nodes):
        policy = node.policy
        if policy is DEFAULT_POLICY:
            continue
        if policy.on_error == "continue" and node.id not in handled:
            findings.append(_error_unhandled(node, number))
        facts = type_infos[node.type]
        if facts is not None and policy.default is not None:
            handle = str(policy.default.get("handle"))
            if find_output(facts.outputs, handle) is None:
                message = f"node {node.id!r}: type {node.type!r} has no output {handle!r}"
                pointer = f"/nodes/{number}/policy/default/handle"
                findings.append(
                    Diagnostic("unknown-handle", "error", message, pointer, node=node.id)
                )
        if policy.retry.attempts > 1 or policy.retry.on or policy.retry.not_on:
            retries.append((number, node))
    return findings + _unused_retries(graph, type_infos, retries) if retries else findings


def _error_unhandled(node: Node, number: int) -> Diagnostic:
    return Diagnostic(
        "error-unhandled",
        "error",
        f"node {node.id!r} continues on error, but no edge leaves its handle {ERROR_HANDLE!r}",
        f"/nodes/{number}/policy/onError",
        node=node.id,
        hint=f"connect its output {ERROR_HANDLE!r}, or let its policy for errors be 'fail'",
    )


def _unused_retries(
    graph: Graph,
    type_infos: Mapping[str, NodeTypeInfo | None],
    retries: Sequence[tuple[int, Node]],
) -> list[Diagnostic]:
    """Return a warning for each retry policy that can never start a node again."""
    passive = {kind for kind, facts in type_infos.items() if facts and not facts.executes}
    linked = materialized_ids(graph, [node.id for _, node in retries if node.type in passive])
    link_users = {edge.target for edge in graph.edges if edge.channel == LINK}
    findings: list[Diagnostic] = []
    for number, node in retries:
        facts = type_infos[node.type]
        # A node with links or a time limit can fail in a way that another attempt may not.
        is_alone = node.id not in link_users and node.policy.timeout_s is None
        reason = _why_no_names_fit(node.policy.retry)
        if node.id in linked:
            reason = "it is only linked, so it is never executed"
        elif facts is not None and facts.fails_permanently and is_alone:
            reason = f"another attempt of a {node.type} fails in the same way"
        if reason is not None:
            message = f"node {node.id!r} is never retried: {reason}"
            pointer = f"/nodes/{number}/policy/retry"
            findings.append(Diagnostic("unused-retry", "warning", message, pointer, node=node.id))
    return findings


def _why_no_names_fit(retry: Retry) -> str | None:
    """Return why a retry policy excludes every failure; None if it does not."""
    if retry.attempts == 1:
        return "retry.attempts is 1" if retry.on or retry.not_on else None
    if "Exception" in retry.not_on:
        return "retry.notOn names every exception"
    if retry.on and set(retry.on) <= set(retry.not_on):
        return "retry.notOn names all that retry.on names"
    if set(retry.on) == {PermanentError.__name__}:
        return "retry.on names PermanentError only, which no other attempt can change"
    return None
