"""What is stored of one graph run: its events, and how its results were made."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

from planwave.events.types import NodeWaiting, PlanRefused, PlanRequested, PlanRevised, TypedEvent
from planwave.graph.model import Json


class StoredGraphRun:
    """The stored events of one graph run: the execution's own, or one nested in a node.

    A nested run starts when its node opens it. It ends when it is abandoned or opened again.

    Attributes:
        prefix: The path prefix of its nodes; "" for the execution's own graph.
        parent: The run that contains its node; None for the execution's own graph.
        identity: Hashes of the graph, and of inputs and variables; None for the execution's own
            graph, and for runs stored by versions that did not store them.
        events: Starts of waves and what happened to its nodes, in order.
        once_values: The once values of its nodes, by path and key.
        depends_on: What the results, the requests and the once values of its nodes depend on, by path.
        attempt_number: The attempt of its node that opened it.
        attempt_offset: The highest attempt its nodes could have had when it was opened.
        highest_attempt: The highest attempt so far of its nodes, and of those nested in them.
        reused: The execution whose result a node reused, by path.
        failed_inside: Paths of nodes whose reused result goes on without a node that failed inside.
        must_restart: The run before it failed or was abandoned: the node's next attempt starts it.
        is_resumed: The graph runs: its node has opened it again.
    """

    __slots__ = (
        "_completed",
        "_type_versions",
        "_unfinished",
        "attempt_number",
        "attempt_offset",
        "depends_on",
        "events",
        "failed_inside",
        "highest_attempt",
        "identity",
        "is_resumed",
        "must_restart",
        "once_values",
        "parent",
        "prefix",
        "reused",
    )

    def __init__(self, prefix: str = "", parent: StoredGraphRun | None = None) -> None:
        self.prefix, self.parent = prefix, parent
        self.identity: tuple[str, str] | None = None
        self.events: list[TypedEvent] = []
        self.once_values: dict[str, dict[str, Json]] = {}
        self.depends_on: dict[str, str] = {}
        self.reused: dict[str, str] = {}
        self.failed_inside: set[str] = set()
        self.attempt_number = 1
        self.attempt_offset = self.highest_attempt = 0
        self.must_restart = self.is_resumed = False
        self._type_versions: dict[str, Mapping[str, int]] = {}
        self._unfinished: dict[str, int | None] = {}
        self._completed: dict[str, int | None] = {}

    def add(self, event: TypedEvent) -> None:
        """Add an event of one of its nodes, or of the run."""
        path = event.path or ""
        self.count_attempt(event.attempt or 0)
        match event.type:
            case "once.stored":
                self.once_values.setdefault(path, {})[event.data["key"]] = event.data["value"]
                self._add_dependencies(path, event.data.get("depends_on"))
                return
            case "node.started":
                self._type_versions[path] = event.data.get("versions", {})
                self._unfinished[path] = event.attempt
            case "node.completed":
                if origin := event.data.get("reused"):
                    self._type_versions[path] = event.data.get("versions", {})
                    self.reused[path] = origin["execution_id"]
                    if origin.get("failed_inside"):
                        self.failed_inside.add(path)
                self._unfinished.pop(path, None)
                self._completed[path] = event.attempt
                self._add_dependencies(path, event.data.get("depends_on"))
            case "node.waiting":
                self._add_dependencies(path, event.data.get("depends_on"))
            case "node.failed" | "node.retrying":
                self._unfinished.pop(path, None)
            case _:
                pass
        if event.type == "wave.started" or (
            event.type.startswith("node.") and event.type not in _EMITTED
        ):
            self.events.append(event)

    def _add_dependencies(self, path: str, depends_on: str | None) -> None:
        """Note what is stored last of a node; a result that a person gave depends on nothing."""
        self.depends_on.pop(path, None)
        if depends_on is not None:
            self.depends_on[path] = depends_on

    def add_plan_event(self, event: PlanRequested | PlanRevised | PlanRefused) -> None:
        """Add that a change of its graph was requested, made or refused."""
        if event.type == "plan.revised":
            self._revise(event.data["graph_change"]["dropped_nodes"])
        self.events.append(event)

    def _revise(self, dropped: Collection[str]) -> None:
        """Forget, as its graph was changed, what happened to nodes that are gone or never began."""
        kept = {event.path for event in self.events if _is_begin(event)}
        kept.difference_update(dropped)
        kept.add(None)  # of the run itself
        self.events = [event for event in self.events if event.path in kept]

    def count_attempt(self, number: int) -> None:
        """Raise the highest attempt of this run, and of the runs around it."""
        run = self
        while run is not None and run.highest_attempt < number:
            run.highest_attempt = number
            run = run.parent

    @property
    def depends_outside(self) -> bool:
        """Whether what its nodes gave depends on more than the graph, its inputs and variables."""
        return any(not each.startswith(OF_GRAPH) for each in self.depends_on.values())

    def latest(self) -> dict[str, TypedEvent]:
        """Return the last event of each of its nodes, by path."""
        return {event.path: event for event in self.events if event.path and _is_of_node(event)}

    def requests(self) -> dict[str, NodeWaiting]:
        """Return the requests that its nodes wait for, by id."""
        latest = self.latest().values()
        return {event.data["request_id"]: event for event in latest if event.type == "node.waiting"}

    def how_made(self, path: str) -> HowMade:
        """Return the stored origin of a node's result."""
        return HowMade(
            self._type_versions.get(path),
            self.once_values.get(path, NO_ONCE_VALUES),
            self.depends_on.get(path),
        )

    def unfinished_attempt(self, path: str) -> int | None:
        """Return the attempt of a node that neither completed nor failed, if any."""
        return self._unfinished.get(path)

    def completed_attempt(self, path: str) -> int | None:
        """Return the attempt of a node that completed, None where none ran to its end."""
        return self._completed.get(path)

    def type_versions(self) -> Iterator[tuple[str, int]]:
        """Yield ``(type, version)`` for every stored type version."""
        for versions in self._type_versions.values():
            yield from versions.items()


_EMITTED: Final = frozenset({"node.event", "node.log"})


def _is_begin(event: TypedEvent) -> bool:
    """Return whether a node has begun, or was cancelled by itself before."""
    is_cancelled = event.type == "node.cancelled" and event.attempt is not None
    return is_cancelled or event.type in ("node.started", "node.completed")


def _is_of_node(event: TypedEvent) -> bool:
    return event.type != "wave.started"


NO_ONCE_VALUES: Final[Mapping[str, Json]] = {}
OF_GRAPH: Final = "graph-"
"""Begins the hash of dependencies that cannot change where the graph and its variables are the same."""
UNKNOWN_DEPENDENCIES: Final = ""
"""Stored in place of the hash where it is not known, so that nothing is reused."""


class HowMade(NamedTuple):
    """The stored origin of a node's result.

    Attributes:
        type_versions: Versions other than 1 of the types that it depends on; None if unknown.
        once_values: The once values of the node, by key.
        depends_on: The hash of what its types declared; None where nothing was stored.
    """

    type_versions: Mapping[str, int] | None = None
    once_values: Mapping[str, Json] = NO_ONCE_VALUES
    depends_on: str | None = None

    def still_holds(self, depends_on: str | None) -> bool:
        """Return whether what was stored depends on nothing else than what it would depend on now."""
        return self.depends_on in (None, depends_on)
