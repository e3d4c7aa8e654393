"""Inputs of flows that are saved under a name, so that executions are started with them again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from planwave.errors import GraphInvalid, InputError, LimitExceeded, NotFound
from planwave.executor.inputs import named_inputs, validate_inputs
from planwave.executor.options import RunOptions
from planwave.executor.program import Program
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.plan import canonical_json
from planwave.principals import current_principal, principal_json
from planwave.service.dependencies import ServiceDependencies
from planwave.service.executions.run_spec import RunSpec, rendered_spec
from planwave.service.flows.flow_queries import Flow, FlowQueries, plan_of_flow
from planwave.storage.records import InputSet

if TYPE_CHECKING:
    from planwave.shapes.plans import InputSetResponse

MAX_NAME_CHARS: Final = 100
MAX_SETS: Final = 100
"""Of one flow."""
MAX_BYTES: Final = 64 * 1024
"""Of the JSON of one set."""


class InputSets:
    """The saved inputs of flows, checked as an execution of the revision that callers start checks them.

    Args:
        dependencies: Those of the service.
        flows: The stored flows.
    """

    def __init__(self, dependencies: ServiceDependencies, flows: FlowQueries) -> None:
        self._dependencies = dependencies
        self._flows = flows

    async def list(self, plan_id: str) -> list[InputSetResponse]:
        """Return the inputs that are saved of a flow, by name, each with what does not fit the flow any more.

        Raises:
            NotFound: There is no such flow.
        """
        flow = await self._flows.get(plan_id)
        saved = await self._flows.input_sets(plan_id)
        return await asyncio.to_thread(lambda: [self._as_json(flow, each) for each in saved])

    async def save(
        self,
        plan_id: str,
        name: str,
        inputs: Mapping[str, Any] | None = None,
        *,
        new_name: str | None = None,
    ) -> InputSetResponse:
        """Save inputs under a name, in place of those that have it; durable when this returns.

        Args:
            plan_id: The flow.
            name: One line without a slash.
            inputs: As an execution is given them; None leaves those that are saved.
            new_name: The name that they get; None leaves it.

        Raises:
            NotFound: There is no such flow, or nothing is saved under the name that is to be changed.
            InputError: ``invalid-inputs``, ``unknown-input-node``: an execution refuses them; ``invalid-name``.
            GraphInvalid: The flow has errors, so that no inputs fit it.
            LimitExceeded: They are too large.
            Conflict: ``name-taken``, ``too-many-input-sets``.
        """
        flow = await self._flows.get(plan_id)
        present = {each.name: each for each in await self._flows.input_sets(plan_id)}.get(name)
        own_name = _checked_name(name if new_name is None else new_name)
        if inputs is not None:
            inputs = await asyncio.to_thread(self._checked, flow, inputs)
        elif present is not None:
            inputs = present.inputs
        else:
            raise _nothing_saved(name)
        now = self._dependencies.timestamp()
        made = now if present is None else present.created_at
        saved = InputSet(plan_id, own_name, inputs, made, now, current_principal())
        await self._dependencies.store.input_sets.save(saved, name, most=MAX_SETS)
        return await asyncio.to_thread(self._as_json, flow, saved)

    async def delete(self, plan_id: str, name: str) -> None:
        """Delete the inputs that are saved under a name.

        Raises:
            NotFound: There is no such flow, or nothing is saved under this name.
        """
        await self._flows.record(plan_id)
        if not await self._dependencies.store.input_sets.delete(plan_id, name):
            raise _nothing_saved(name)

    def _checked(self, flow: Flow, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return inputs as they are stored, if an execution of the flow would take them."""
        plan = plan_of_flow(flow, self._dependencies.limits)
        program = Program(plan.graph, self._dependencies.catalogue)
        named = named_inputs(program, inputs)
        if (size := len(canonical_json(named).encode())) > MAX_BYTES:
            raise LimitExceeded("input_set_bytes", MAX_BYTES, size, hint="save less under one name")
        spec = RunSpec(
            graph=plan.graph,
            inputs=validate_inputs(program, inputs),
            options=RunOptions(),
            goal=plan.user_prompt,
        )
        rendered_spec(spec, program)
        return named

    def _as_json(self, flow: Flow, saved: InputSet) -> InputSetResponse:
        findings: list[Diagnostic] = []
        try:
            self._checked(flow, saved.inputs)
        except GraphInvalid as error:
            findings = [each for each in error.diagnostics if each.severity == "error"]
        except InputError as error:
            findings = [Diagnostic(error.code, "error", error.message, "/inputs", hint=error.hint)]
        return {
            "name": saved.name,
            "inputs": dict(saved.inputs),
            "created_at": saved.created_at,
            "updated_at": saved.updated_at,
            "created_by": principal_json(saved.created_by),
            "issues": [each.as_json() for each in findings],
        }


def _nothing_saved(name: str) -> NotFound:
    return NotFound(f"no inputs are saved as {name!r}", hint="list the saved inputs of the flow")


def _checked_name(name: str) -> str:
    """Return a name without surrounding space.

    Raises:
        InputError: ``invalid-name``.
    """
    name = name.strip()
    if (
        name in ("", ".", "..")
        or len(name) > MAX_NAME_CHARS
        or not name.isprintable()
        or "/" in name
    ):
        raise InputError(
            "a name of saved inputs is one line of text without a slash",
            code="invalid-name",
            hint=f"write 1 to {MAX_NAME_CHARS} characters",
        )
    return name
