"""What an execution is given from outside, and which part of its program that chooses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from planwave.errors import InputError, InvalidInputs, TemplateError
from planwave.executor.options import RunOptions
from planwave.executor.program import BoundNode, Program
from planwave.executor.scheduling.types import SchedulingRules
from planwave.executor.scheduling.waves import WaveBarrier
from planwave.expressions import TaskTemplate, check_task, has_template
from planwave.expressions.json_text import copy_json
from planwave.graph.diagnostics import Diagnostic, short_repr
from planwave.graph.flow_inputs import FlowInputs
from planwave.graph.json_values import (
    MAX_VALUE_DEPTH,
    JsonLimits,
    NotJson,
    json_findings,
    pointer_part,
    to_json_each,
)
from planwave.graph.model import DEFAULT_TARGET_HANDLE, Json
from planwave.graph.ports import has_output, outputs_text
from planwave.graph.protocols import DeclaresInputs, InputAdapter
from planwave.validation import json_type

_MAX_NODES_LISTED = 20
_INPUTS: Final = "/inputs"
"""Where inputs are in the body of a request."""
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
    return WaveBarrier(topology, preset, entry.part, entry.dropped, SchedulingRules()).total


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
    # What only declares inputs, and leads nowhere, gives them to tasks wherever the run begins.
    entries = program.entry_nodes - declarations(program)
    chosen = entries & preset.keys()
    if not chosen:
        return InputPlan(preset, frozenset(), None)
    dropped = entries - chosen
    reached = program.walk(chosen, forward=True)
    part = program.walk(reached, forward=False, stops=dropped | preset.keys())
    part |= program.entry_nodes - entries
    return InputPlan(preset, dropped, frozenset(part | dropped))


def declarations(program: Program) -> frozenset[int]:
    """Return the entry nodes that declare fields and that no edge leaves."""
    index, outgoing = program.topology.index, program.topology.outgoing
    return frozenset(
        number for node_id in program.inputs.fields if not outgoing[number := index[node_id]]
    )


def flow_inputs(program: Program, entry: InputPlan) -> dict[str, Json]:
    """Return the inputs of the flow by name, as a run of that part of a program has them.

    They are known before the run: from the values that entry nodes are settled with, or else from
    their data. Fields of an entry node that was not chosen count only where no other declares them.
    """
    by_name: dict[str, Json] = {}
    index = program.topology.index
    numbers = sorted(
        (index[each] for each in program.inputs.fields), key=entry.dropped.__contains__
    )
    for number in reversed(numbers):
        value = _input_value(program, number, entry)
        names = program.inputs.fields[program.topology.ids[number]]
        if isinstance(value, dict):
            by_name |= {name: value[name] for name in names if name in value}
    if program.inputs.whole is not None and any(
        DEFAULT_TARGET_HANDLE in step.task.names for step in program.steps if step.task is not None
    ):
        number = index[program.inputs.whole]
        if number in entry.preset or isinstance(
            program.steps[number].implementation, DeclaresInputs
        ):
            by_name[DEFAULT_TARGET_HANDLE] = _input_value(program, number, entry)
    return by_name


def _input_value(program: Program, number: int, entry: InputPlan) -> Json:
    step = program.steps[number]
    given = entry.preset.get(number, {}).get(step.facts.outputs[0].name)
    if isinstance(step.implementation, DeclaresInputs):
        return step.implementation.input_value(step.node.data, given)
    return given


def require_tasks(program: Program, entry: InputPlan) -> dict[str, Json]:
    """Check before a run that its inputs have what it declares and what its tasks name, and return these inputs.

    Raises:
        InvalidInputs: An entry node that is given nothing declares what has no default.
        InputError: ``invalid-inputs``: a task names an input without a value.
    """
    nothing_given = program.entry_nodes - entry.dropped - entry.preset.keys()
    if entry.part is not None:
        nothing_given &= entry.part
    errors = [
        each
        for number in sorted(nothing_given)
        for each in _value_errors(program.steps[number], None, _INPUTS)
    ]
    if errors:
        raise InvalidInputs(errors)
    inputs = flow_inputs(program, entry)
    for number, step in enumerate(program.steps):
        if step.task is None or not (entry.part is None or number in entry.part):
            continue
        render_task(step.task, inputs, f"the task of node {step.node.id!r}")
    return inputs


def goal_errors(goal: str, inputs: FlowInputs, pointer: str = "/goal") -> list[Diagnostic]:
    """Return what is wrong with a goal as a template over the inputs of its flow, which is nothing for plain text."""
    names = inputs.goal_names
    if names is None or not has_template(goal):
        return []
    return [
        Diagnostic(each.code, "error", f"the goal: {each.message}", pointer, hint=each.hint)
        for each in check_task(goal, names)
    ]


def render_task(task: TaskTemplate, inputs: Mapping[str, Json], what: str) -> str:
    """Return a task or the goal for some inputs.

    Raises:
        InputError: ``invalid-inputs``: an input that it names has no value.
    """
    try:
        return task.render(inputs)
    except TemplateError as error:
        message = f"{what} names an input without a value: {error.message}"
        hint = "give the input, or a default to its field in the schema of the start"
        raise InputError(message, code="invalid-inputs", hint=hint) from error


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
        inputs: ``{node_id: {handle: value}}``, or ``{handle: value}`` for the one entry node, or
            ``{field: value}`` for the fields that it declares.

    Returns:
        ``{node_id: {handle: value}}``, with the defaults of what is not given; validating these
        again changes nothing.

    Raises:
        InvalidInputs: They do not fit what the entry nodes declare; pointers lead into them as they are given.
        InputError: As ``copy_inputs``, and ``invalid-inputs`` if the type rejects them.
    """
    values = adapt_inputs(program, copy_inputs(program, inputs))
    errors = [
        each
        for node_id, by_handle in values.items()
        for each in _declared_errors(program, node_id, by_handle, inputs or {})
    ]
    if errors:
        raise InvalidInputs(errors)
    return values


def _declared_errors(
    program: Program, node_id: str, by_handle: Mapping[str, Json], given: Mapping[str, Json]
) -> Iterator[Diagnostic]:
    """Yield where the values of a node do not fit what it declares."""
    step = program.steps[program.topology.index[node_id]]
    first = step.facts.outputs[0].name if step.facts.outputs else ""
    if first not in by_handle:
        return
    pointer = _INPUTS
    if node_id in given:
        pointer += f"/{pointer_part(node_id)}/{first}"
    elif first in given:
        pointer += f"/{first}"
    yield from _value_errors(step, by_handle[first], pointer)


def _value_errors(step: BoundNode, given: Json, pointer: str) -> Iterator[Diagnostic]:
    if isinstance(step.implementation, DeclaresInputs):
        for each in step.implementation.input_errors(step.node.data, given):
            yield replace(each, pointer=pointer + each.pointer, node=step.node.id)


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
    pairs = _by_node(program, pairs)
    return {
        node_id: _checked_values(program, _node_number(program, node_id), values)
        for node_id, values in pairs.items()
    }


def named_inputs(program: Program, inputs: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return checked inputs as ``{field: value}``, or by node where they are not fields of an entry node only.

    In this form they outlast other names of nodes. Errors are those of ``copy_inputs``.
    """
    by_node = copy_inputs(program, inputs)
    index, fields = program.topology.index, program.inputs.fields
    named: dict[str, Json] = {}
    for node_id, by_handle in by_node.items():
        first = program.steps[index[node_id]].facts.outputs[0].name
        own = by_handle.get(first) if len(by_handle) == 1 else None
        if not isinstance(own, dict) or not own.keys() <= set(fields.get(node_id, ())):
            return by_node
        if own.keys() & (named.keys() | index.keys()):
            return by_node
        named |= own
    return named


def _by_node(program: Program, inputs: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return inputs by node: flat ones are outputs of the one entry node, or fields that entries declare."""
    steps, index, fields = program.steps, program.topology.index, program.inputs.fields
    if not inputs or any(key in index for key in inputs):
        return inputs
    if len(program.entry_nodes) == 1:
        (number,) = program.entry_nodes
        if all(has_output(steps[number].facts, key) for key in inputs):
            return {steps[number].node.id: inputs}
    known = [name for names in fields.values() for name in names]
    if not known:
        return inputs
    if not inputs.keys() <= set(known):
        raise InvalidInputs([_unknown_input(name, known) for name in inputs if name not in known])
    return {
        node_id: {steps[index[node_id]].facts.outputs[0].name: own}
        for node_id, names in fields.items()
        if (own := {name: inputs[name] for name in names if name in inputs})
    }


def _unknown_input(name: str, known: Sequence[str]) -> Diagnostic:
    return Diagnostic(
        InvalidInputs.code,
        "error",
        f"{short_repr(name)} is no input",
        f"{_INPUTS}/{pointer_part(name)}",
        hint=f"its inputs are {', '.join(known[:_MAX_NODES_LISTED])}",
    )


def _adapted_values(program: Program, number: int, values: dict[str, Json]) -> dict[str, Json]:
    step = program.steps[number]
    first = step.facts.outputs[0].name if step.facts.outputs else ""
    if first in values and step.node.id in program.inputs.fields:
        given = step.implementation.input_value(step.node.data, values[first])
        return {**values, first: given}
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
