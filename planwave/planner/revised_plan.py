"""A plan that is to be changed in words, and the change that a model wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from planwave.graph.diagnostics import Diagnostic
from planwave.graph.editing.editor import PlanContent
from planwave.graph.editing.revision import Progress
from planwave.graph.model import Graph
from planwave.graph.operations import Operation


class RevisedPlan(NamedTuple):
    """The plan that is to be changed.

    Attributes:
        goal: Its goal.
        content: Its title and its graph document.
        graph: The graph, read.
        progress: How far it has been run, where it is being run: what has begun cannot change.
        results: The begin of what its nodes gave so far, by id.
        has_ended: Whether the run of it has ended: a new one begins with the changed plan.
    """

    goal: str
    content: PlanContent
    graph: Graph
    progress: Progress | None = None
    results: Mapping[str, str] = {}
    has_ended: bool = False


class RevisionReading(NamedTuple):
    """What was read of a reply.

    Attributes:
        reply: The reply as it may be kept and shown.
        answer: The sentence of the model on what it changes, or why it changes nothing.
        operations: The changes, in order; none where nothing can be done.
        content: What they make of the plan; None where there are errors or no operations.
        graph: The checked graph of that.
        diagnostics: Every finding; errors where there is no graph for the operations.
    """

    reply: str
    answer: str = ""
    operations: Sequence[Operation] = ()
    content: PlanContent | None = None
    graph: Graph | None = None
    diagnostics: Sequence[Diagnostic] = ()


class Revision(NamedTuple):
    """The change of a plan as a model wrote it, with who was asked, and each attempt of it."""

    reading: RevisionReading
    provider: str
    model: str
    attempts: Sequence[dict[str, Any]]
