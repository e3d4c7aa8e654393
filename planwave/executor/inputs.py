"""What an execution is given from outside, and which part of its program that chooses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from planwave.errors import InputError
from planwave.executor.options import RunOptions
from planwave.executor.program import BoundNode, Program
from planwave.executor.scheduling.waves import WaveBarrier
from planwave.expressions.json_text import copy_json
from planwave.graph.json_values import (
    MAX_VALUE_DEPTH,
    JsonLimits,
    NotJson,
    json_findings,
    to_json_each,
)
from planwave.graph.model import Json
from planwave.graph.ports import has_output, outputs_text
from planwave.graph.protocols import InputAdapter
from planwave.validation import json_type

_MAX_NODES_LISTED = 20
_VALUE_LIMITS = JsonLimits(MAX_VALUE_DEPTH + 1)
"""For finding the places of what is not JSON in values by handle."""


@dataclass(frozen=True, slots=True)
class InputPlan:
    """Which part of a program is chosen to run; see ``docs/semantics.md``, "Entry".

    Attributes:
        preset: The nodes that are settled from outside, with their values.
        dropped: Entry nodes that were not chosen.
        part: The nodes that run or are settled; None for all.
    """

    preset: Mapping[int, Mapping[str, Json]]
    dropped: frozenset[int]
    part: frozenset[int] | None


def wave_count(program: Program, entry: InputPlan) -> int:
    """Return the number of waves of a run of that part of a program."""
    topology, preset = program.topology, {node: () for node in entry.preset}
    return WaveBarrier(topology, preset, entry.part, entry.dropped, barrier=False).total


def plan_inputs(
    program: Program,
    inputs: Mapping[str, Mapping[str, Json]] | None,
    options: RunOptions = RunOptions(),  # noqa: B008 - immutable
) -> InputPlan:
    """Return the part of the graph that runs with some inputs of ``validate_inputs``.

    If the inputs name entry nodes, the other entry nodes are dropped. The nodes that a chosen entry
    reaches run, with all nodes that these need. Nodes that only feed settled or dropped nodes do
    not run. ``run_from`` and ``run_to`` narrow the part to descendants and ancestors of the named
    nodes, again with all nodes that these need.

    Raises:
        InputError: ``unknown-input-node``; ``unknown-node`` if an option names one;
            ``nothing-to-run`` if the options leave no node to run.
    """
    preset = {_node_number(program, node_id): values for node_id, values in (inputs or {}).items()}
    entry = _plan_entries(program, preset)
    if not (options.run_from or options.run_to):
        return entry
    before = _node_numbers(program, options.run_from, "run_from")
    ends = _node_numbers(program, options.run_to, "run_to")
    members = set(range(len(program.steps)) if entry.part is None else entry.part) - entry.dropped
    if before:
        members &= program.walk(before, forward=True)
    if ends:
        members &= ends
    if not members:
        raise _nothing_to_run(options)
    needed = program.walk(members, forward=False, stops=entry.dropped | preset.keys())
    return InputPlan(preset, entry.dropped & needed, frozenset(needed | preset.keys()))


def _plan_entries(program: Program, preset: Mapping[int, Mapping[str, Json]]) -> InputPlan:
    """Find what inputs choose by themselves."""
    chosen = program.entry_nodes & preset.keys()
    if not chosen:
        return InputPlan(preset, frozenset(), None)
    dropped = program.entry_nodes - chosen
    reached = program.walk(chosen, forward=True)
    part = program.walk(reached, forward=False, stops=dropped | preset.keys())
    return InputPlan(preset, dropped, frozenset(part | dropped))


def _node_numbers(program: Program, node_ids: Sequence[str], option: str) -> set[int]:
    index = program.topology.index
    unknown = [node_id for node_id in node_ids if node_id not in index]
    if unknown:
        names = ", ".join(map(repr, unknown[:_MAX_NODES_LISTED]))
        raise InputError(
            f"{option} names {names}, not in the graph",
            code="unknown-node",
            hint=f"nodes are: {', '.join(program.topology.ids[:_MAX_NODES_LISTED])}",
        )
    return {index[node_id] for node_id in node_ids}


def _nothing_to_run(options: RunOptions) -> InputError:
    options_text = [
        f"{name} {', '.join(map(repr, ids[:_MAX_NODES_LISTED]))}"
        for name, ids in (("run_from", options.run_from), ("run_to", options.run_to))
        if ids
    ]
    return InputError(
        f"nothing is left to run with {' and '.join(options_text)}",
        code="nothing-to-run",
        hint="run_to has to name what follows run_from, and what the inputs lead to",
    )


def validate_inputs(
    program: Program, inputs: Mapping[str, Json] | None
) -> dict[str, dict[str, Json]]:
    """Validate and copy the inputs of one run, so that its nodes cannot change those of another.

    If a node's type has ``enter``, the node is settled with the values that ``enter`` returns.

    Args:
        program: The graph they are for.
        inputs: ``{node_id: {handle: value}}``, or ``{handle: value}`` for the one entry node.

    Returns:
        ``{node_id: {handle: value}}``; validating these again changes nothing.

    Raises:
        InputError: As ``copy_inputs``, and ``invalid-inputs`` if the type rejects them.
    """
    return adapt_inputs(program, copy_inputs(program, inputs))


def adapt_inputs(
    program: Program, inputs: Mapping[str, dict[str, Json]]
) -> dict[str, dict[str, Json]]:
    """Return copied inputs as the node types complete them; see ``validate_inputs``.

    Raises:
        InputError: ``invalid-inputs``: a type rejects them.
    """
    return {
        node_id: _adapted_values(program, program.topology.index[node_id], values)
        for node_id, values in inputs.items()
    }


def copy_inputs(program: Program, inputs: Mapping[str, Json] | None) -> dict[str, dict[str, Json]]:
    """Validate and copy inputs, without the checks of the node types.

    Raises:
        InputError: ``unknown-input-node``; ``invalid-inputs`` if they have another shape, name an
            unknown handle, or hold a value that is not JSON.
    """
    if inputs is None:
        return {}
    pairs = _require_object(inputs, "inputs")
    entry = _flat_entry_node(program, pairs)
    if entry is not None:
        pairs = {entry: pairs}
    return {
        node_id: _checked_values(program, _node_number(program, node_id), values)
        for node_id, values in pairs.items()
    }


def _flat_entry_node(program: Program, inputs: Mapping[Any, Json]) -> str | None:
    """Return the id of the one entry node of flat inputs, or None if the inputs are not flat."""
    if len(program.entry_nodes) != 1 or not inputs:
        return None
    (number,) = program.entry_nodes
    step, index = program.steps[number], program.topology.index
    is_flat = all(
        isinstance(key, str) and key not in index and has_output(step.facts, key) for key in inputs
    )
    return step.node.id if is_flat else None


def _adapted_values(program: Program, number: int, values: dict[str, Json]) -> dict[str, Json]:
    step = program.steps[number]
    if not isinstance(step.implementation, InputAdapter):
        return values
    try:
        entered = step.implementation.adapt_inputs(values)
    except InputError as error:
        message = f"{_location(step)}: {error.message}"
        raise InputError(message, code="invalid-inputs", hint=error.hint) from error
    return _checked_values(program, number, entered)


def _location(step: BoundNode) -> str:
    return f"inputs[{step.node.id!r}]"


def _checked_values(program: Program, number: int, values: object) -> dict[str, Json]:
    step = program.steps[number]
    where = _location(step)
    by_handle = dict(_require_object(values, where))
    try:
        copy: dict[str, Json] = copy_json(to_json_each(by_handle))
    except NotJson as error:
        errors = json_findings(by_handle, limits=_VALUE_LIMITS)
        message = f"{where} cannot be given to a node: {'; '.join(each.message for each in errors)}"
        hint = next((each.hint for each in errors if each.hint), None)
        raise InputError(message, code="invalid-inputs", hint=hint) from error
    for handle in copy:
        if not has_output(step.facts, handle):
            raise InputError(
                f"{where} names handle {handle!r}, which type {step.node.type!r} does not have; "
                f"its outputs are: {outputs_text(step.facts)}",
                code="invalid-inputs",
            )
    return copy


def _require_object(value: object, where: str) -> Mapping[Any, Json]:
    if isinstance(value, Mapping):
        return cast("Mapping[Any, Json]", value)
    raise InputError(
        f"{where} must be an object, got {json_type(value)}",
        code="invalid-inputs",
        hint="inputs are {node_id: {handle: value}}; a start node's handle is 'output'",
    )


def _node_number(program: Program, node_id: object) -> int:
    number = program.topology.index.get(cast("str", node_id))
    if number is None:
        node_ids = ", ".join(program.topology.ids[:_MAX_NODES_LISTED])
        raise InputError(
            f"inputs name node {node_id!r}, which is not in the graph",
            code="unknown-input-node",
            hint=f"nodes are: {node_ids}",
        )
    return number
