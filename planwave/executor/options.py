"""How one execution is to be run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, Literal, cast, get_args

from planwave.errors import InputError
from planwave.events.budget import AMOUNTS, WHOLE, is_amount
from planwave.graph.diagnostics import short_repr
from planwave.graph.model import Json

Scheduling = Literal["eager", "waves"]
OnFailure = Literal["continue", "stop"]

_CHOICES: Final = {"scheduling": get_args(Scheduling), "on_failure": get_args(OnFailure)}
_SECONDS: Final = ("node_timeout_s", "run_timeout_s")
_NODE_LISTS: Final = ("run_to", "run_from")
DEFAULT_REPLANS: Final = 3
MOST_REPLANS: Final = 10
"""How many changes of its graph a model may write in an execution, whatever the options say."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Scheduling, failure policy and bounds of one execution; None means unbounded.

    Attributes:
        scheduling: ``eager`` starts a node the moment it is ready; ``waves`` puts a barrier
            between waves.
        on_failure: ``continue`` finishes what does not depend on the failure; ``stop`` cancels it.
        max_parallel: Nodes doing their own work at the same time.
        node_timeout_s: Default for nodes without ``timeoutS``, seconds of an attempt's own time.
        run_timeout_s: The whole execution, seconds.
        max_events: Stored events, the terminal one apart.
        max_result_bytes: What one node gives, on all its outputs; more fails the node. Sizes are
            those of compact JSON in UTF-8, escapes counted as one byte.
        max_event_bytes: What one event or one request of a node holds; more fails the node.
        max_state_bytes: What all nodes give together, nested runs included, with their events and
            requests, and the documents of nested graphs.
        max_steps: Starts of nodes, those in nested runs and retries included.
        max_depth: Graphs inside graphs; 1 lets a node run graphs, but none of their nodes.
        run_to: Ids of nodes: only these and their dependencies run. Nested runs are not narrowed.
        run_from: Ids of nodes: only these, later nodes and the dependencies of both run.
        budget: Limits of what the execution may use, nested runs and retries included: ``usd``,
            ``tokens``, ``calls`` (of models) and ``wall_s`` (seconds not paused). It is paused, with a
            request for more, once nothing can go on within them. An amount that is not given, or None,
            has no limit.
        replan: ``{"on_failure": true, "max": 3}``: where a node of the execution's own graph fails and no
            policy handles that, a model writes a change of the graph, at most so many times in all.
            With ``"by_nodes": true`` these nodes may ask for such a change, too; see ``FlowContext.may_replan``.

    Raises:
        InputError: ``invalid-option``: a value is not one of the choices, or out of its range.
    """

    scheduling: Scheduling = "eager"
    on_failure: OnFailure = "continue"
    max_parallel: int | None = None
    node_timeout_s: float | None = None
    run_timeout_s: float | None = None
    max_events: int | None = None
    max_result_bytes: int | None = None
    max_event_bytes: int | None = None
    max_state_bytes: int | None = None
    max_steps: int | None = None
    max_depth: int | None = None
    run_to: Sequence[str] = ()
    run_from: Sequence[str] = ()
    budget: Mapping[str, float | None] | None = None
    replan: Mapping[str, int] | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            problem = _problem(field.name, getattr(self, field.name))
            if problem is not None:
                raise InputError(
                    f"the option {field.name} {problem}",
                    code="invalid-option",
                )

    @property
    def budget_limits(self) -> dict[str, float]:
        """The limits of the budget, empty without one."""
        return {name: most for name, most in (self.budget or {}).items() if most is not None}

    @property
    def max_replans(self) -> int:
        """How many changes of its own graph the execution asks for, at most."""
        replan = self.replan or {}
        asks = self.replans_on_failure or self.replans_by_nodes
        return replan.get("max", DEFAULT_REPLANS) if asks else 0

    @property
    def replans_on_failure(self) -> bool:
        """Whether a failure that nothing handles asks for a change of the graph."""
        return bool((self.replan or {}).get("on_failure"))

    @property
    def replans_by_nodes(self) -> bool:
        """Whether nodes may ask for a change of the graph."""
        return bool((self.replan or {}).get("by_nodes"))

    @property
    def has_bounds(self) -> bool:
        """Whether anything is to be counted while it runs."""
        counted = (
            self.max_events, self.max_event_bytes, self.max_result_bytes, self.max_state_bytes,
            self.max_steps,
        )  # fmt: skip
        return any(most is not None for most in counted)

    def as_json(self) -> dict[str, Json]:
        """Return the options that differ from the defaults; ``RunOptions(**them)`` is the same."""
        return {
            name: list(value) if name in _NODE_LISTS else value
            for name, value in asdict(self).items()
            if value != getattr(DEFAULT_OPTIONS, name) and value != []
        }


def _problem(name: str, value: object) -> str | None:
    """Return what is wrong with the value of an option, or None."""
    if name in _CHOICES:
        choices = _CHOICES[name]
        if value in choices:
            return None
        return f"must be {' or '.join(map(repr, choices))}, not {value!r}"
    if name in _NODE_LISTS:
        if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):  # pyright: ignore[reportUnknownVariableType]
            return None
        return f"must be a list of node ids, not {value!r}"
    if value is None:
        return None
    if name in _OBJECTS:
        return _OBJECTS[name](value)
    if name in _SECONDS:
        if is_amount(name, value):
            return None
        return f"must be a number above 0, not {short_repr(value)}"
    least = 1 if name == "max_parallel" else 0
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        return None
    return f"must be a whole number of at least {least}, not {value!r}"


def _budget_problem(value: object) -> str | None:
    if not isinstance(value, Mapping):
        return f"must be an object such as {{'usd': 0.5}}, not {value!r}"
    for name, most in cast("Mapping[Any, object]", value).items():
        if name not in AMOUNTS:
            return f"limits {', '.join(AMOUNTS)}, not {name!r}"
        if most is not None and not is_amount(name, most):
            whole = "whole " if name in WHOLE else ""
            return f"must have a {whole}number above 0 as {name}, not {most!r}"
    return None


def _replan_problem(value: object) -> str | None:
    problem = f"must be an object such as {{'on_failure': True, 'max': 2}}, not {short_repr(value)}"
    if not isinstance(value, Mapping):
        return problem
    told = cast("Mapping[str, object]", value)
    if told.keys() - {"on_failure", "by_nodes", "max"}:
        return problem
    for name in ("on_failure", "by_nodes"):
        if not isinstance(told.get(name, False), bool):
            return f"must have true or false as {name}, not {short_repr(told[name])}"
    most = told.get("max", DEFAULT_REPLANS)
    if isinstance(most, int) and not isinstance(most, bool) and 1 <= most <= MOST_REPLANS:
        return None
    return f"must have a whole number from 1 to {MOST_REPLANS} as max, not {short_repr(most)}"


_OBJECTS: Final = {"budget": _budget_problem, "replan": _replan_problem}
DEFAULT_OPTIONS: Final = RunOptions()
