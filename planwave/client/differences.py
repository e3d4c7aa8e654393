"""What a service answers about two executions, as types; see ``answers.py``."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from planwave.client.answers import ExecutionStatus, ErrorInfo, NodeStatus, UsageResponse


class NodeDifference(TypedDict):
    """A node that is not the same in both; pairs are of ``a`` and ``b``, None where it is not."""

    path: str
    change: Literal["same", "changed", "only_a", "only_b"]
    status: list[NodeStatus | None]
    duration_s: list[float | None]
    usage: list[UsageResponse | None]
    error: NotRequired[list[ErrorInfo | None]]
    written: NotRequired[list[str]]
    outputs: NotRequired[dict[str, list[dict[str, Any] | None]]]
    result: NotRequired[str]


class DifferenceCounts(TypedDict):
    """How many nodes are what."""

    same: int
    changed: int
    only_a: int
    only_b: int


class DifferenceResponse(TypedDict):
    """What differs between two executions; pairs are of ``a`` and ``b``."""

    a: str
    b: str
    status: list[ExecutionStatus]
    duration_s: list[float | None]
    usage: list[UsageResponse]
    counts: DifferenceCounts
    nodes: list[NodeDifference]
    left_off: int
