"""Stored graph runs of the parent execution of a fork, with the usage that its nodes reported.

Unlike a history that is resumed, a fork reads all runs: an abandoned or restarted run may still hold
results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from planwave.events import Event
from planwave.events.types import UsageData, typed_events
from planwave.events.usage import PART_TOKENS
from planwave.executor.recovery.history import StoredGraphRuns, is_unsuccessful
from planwave.executor.stored_runs import StoredGraphRun
from planwave.graph.model import Json


class ParentHistory(StoredGraphRuns):
    """All graph runs of one execution."""

    def __init__(self, events: Iterable[Event]) -> None:
        super().__init__()
        self._usage: dict[tuple[str, int | None], list[list[Json]]] = {}
        for event in typed_events(events):
            if event.type == "usage":
                self._add_usage(event.path or "", event.attempt, event.data)
            elif not event.type.startswith("execution."):
                self.add(event)

    def types_used(self, record: StoredGraphRun, path: str) -> Iterator[tuple[str, int]]:
        """Yield the types and versions that a node's result depends on, as far as they are stored.

        Of the nested runs of the node, these are all types of their graphs, also where no node of
        the type ran.
        """
        yield from (record.how_made(path).type_versions or {}).items()
        for inner in self.runs_in(path):
            if inner.parent is not record or inner.identity is None:
                continue
            stored = dict(inner.type_versions())
            yield from inner.type_versions()
            document = self.documents.get(inner.identity[0])
            for node in document["nodes"] if document else ():
                if node["type"] not in stored:
                    yield node["type"], 1
            for deeper in inner.latest():
                yield from self.types_used(inner, deeper)

    def has_failed_inside(self, record: StoredGraphRun, path: str) -> bool:
        """Return whether a node of the newest nested graphs of a completed node failed.

        A loop that skips failed items completes without them. A fork that reused such a result has
        no nested graphs of the node; its event says that a node in them failed.

        Args:
            record: The graph run that the node is part of.
            path: The path of the node.
        """
        return path in record.failed_inside or any(
            is_unsuccessful(event)
            or (event.type == "node.completed" and self.has_failed_inside(run, inner))
            for run in self.latest_in(path)
            for inner, event in run.latest().items()
        )

    def has_dependencies_inside(self, record: StoredGraphRun, path: str) -> bool:
        """Return whether results inside a node depend on more than the node's graphs and variables.

        Whether they still hold is found out one by one, when the node runs again.

        Args:
            record: The graph run that the node is part of.
            path: The path of the node.
        """
        return any(
            run.parent is record
            and (
                run.depends_outside
                or any(self.has_dependencies_inside(run, p) for p in run.latest())
            )
            for run in self.runs_in(path)
        )

    def consume_usage(self, path: str, attempt: int, usage: Mapping[str, Json]) -> bool:
        """Return whether an attempt of a node has reported a call with this usage, once for each.

        Where it has not, the process ended between the call and its report.
        """
        reported, counts = self._usage.get((path, attempt), []), _token_counts(usage)
        if counts not in reported:
            return False
        reported.remove(counts)
        return True

    def _add_usage(self, path: str, attempt: int | None, usage: UsageData) -> None:
        reported, counts = self._usage.setdefault((path, attempt), []), _token_counts(usage)
        if counts not in reported or not usage.get("recorded"):  # else reported a second time
            reported.append(counts)


def _token_counts(usage: Mapping[str, Json] | UsageData) -> list[Json]:
    """Return the numbers that tell the calls of one attempt apart."""
    counts = (usage.get("input_tokens"), usage.get("output_tokens"))
    return [*counts, *(usage.get(name) or 0 for name in PART_TOKENS)]
