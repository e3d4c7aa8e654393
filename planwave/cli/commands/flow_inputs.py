"""``planwave flow inputs``: inputs of a flow that are saved under a name, to run it with them again."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Protocol

import typer
from rich.text import Text

from planwave.cli import completion
from planwave.cli.context import CommandContext
from planwave.cli.formatting import one_line, truncate
from planwave.cli.inputs import merge_inputs, read_inputs, resolve_inputs
from planwave.cli.lookup import find_flow, find_input_set
from planwave.cli.options import FlowArgument, InputOption, shared_options
from planwave.errors import InputError
from planwave.expressions.json_text import to_text
from planwave.service.flows.flow_queries import plan_of_flow

if TYPE_CHECKING:
    from planwave.cli.console import Line
    from planwave.cli.inputs import InputArgument
    from planwave.client import AsyncClient
    from planwave.service.flows.flow_queries import Flow
    from planwave.service.service import Service
    from planwave.shapes.plans import InputSetResponse

_VALUE_CHARS: Final = 60

SaveOption = Annotated[
    str | None,
    typer.Option(
        "--save",
        metavar="SAVED",
        autocompletion=completion.input_sets,
        help="Save the values of --input under this name, in place of those that have it.",
    ),
]
DeleteOption = Annotated[
    str | None,
    typer.Option(
        "--delete",
        metavar="SAVED",
        autocompletion=completion.input_sets,
        help="Delete the inputs that are saved under this name.",
    ),
]


@shared_options(over_http=True)
def inputs(
    ctx: CommandContext,
    name: FlowArgument,
    save: SaveOption = None,
    values: InputOption = None,
    delete: DeleteOption = None,
) -> None:
    """List the inputs of a flow that are saved under a name, save some, or delete them.

    Inputs are checked as an execution checks them. For example:

    * `planwave flow inputs trip`
    * `planwave flow inputs trip --save weekend --input city=Lisbon --input days=2`
    * `planwave flow inputs trip --delete weekend`
    """
    if save is not None and delete is not None:
        raise InputError("inputs are saved or deleted, not both", code="usage")
    if (save is None) != (not values):
        hint = f"{ctx.command_hint('flow inputs')} NAME --save SAVED --input VALUE"
        message = "inputs are saved with a name and with values"
        raise InputError(message, code="usage", hint=hint)
    arguments = read_inputs(values or ())

    async def use() -> tuple[Flow, Sequence[InputSetResponse]]:
        async with ctx.backend(ctx.settings()) as backend:
            flow = await find_flow(backend, name)
            sets = backend.choose(LocalInputSets, RemoteInputSets)
            if save is not None:
                return flow, [await sets.save(flow, save, arguments)]
            if delete is None:
                return flow, await sets.list(flow.plan_id)
            await find_input_set(backend, flow, delete)
            await sets.delete(flow.plan_id, delete)
            return flow, ()

    flow, found = asyncio.run(use())
    if delete is not None:
        _show_done(ctx, {"removed": delete, "plan_id": flow.plan_id}, f"Deleted {delete}")
    elif save is not None:
        _show_done(ctx, found[0], f"Saved {found[0]['name']}")
    else:
        _show_list(ctx, flow, found)


def _show_list(ctx: CommandContext, flow: Flow, found: Sequence[InputSetResponse]) -> None:
    console = ctx.console()
    if console.json:
        console.result({"input_sets": found})
        return
    console.lines(_lines(found))
    if found:
        words = f"flow run {shlex.quote(flow.name)} --inputs {shlex.quote(found[0]['name'])}"
        console.verbatim(f"Run it with: {ctx.command_hint(words)}")
    else:
        console.text(f"No inputs of {one_line(flow.name)} are saved yet.")


def _show_done(ctx: CommandContext, result: Mapping[str, Any], words: str) -> None:
    console = ctx.console()
    if console.json:
        console.result(result)
    else:
        console.verbatim(f"{console.glyph('completed')} {words}")


def _lines(sets: Iterable[InputSetResponse]) -> Iterable[Line]:
    """Yield a line for each set: its name and its values, and one for each that does not fit any more."""
    for each in sets:
        shown = (f"{name}={_shortened(value)}" for name, value in each["inputs"].items())
        yield Text.assemble((one_line(each["name"]), "cyan"), f"  {'  '.join(shown)}")
        for issue in each["issues"]:
            yield Text(f"  does not fit any more: {one_line(issue['message'])}", style="yellow")


def _shortened(value: Any) -> str:
    return truncate(one_line(to_text(value)), _VALUE_CHARS)


class InputSetBackend(Protocol):
    """The saved inputs of flows, for the operator."""

    async def list(self, plan_id: str, /) -> Sequence[InputSetResponse]:
        """Return the inputs that are saved of a flow, by name."""
        ...

    async def save(
        self, flow: Flow, name: str, arguments: Sequence[InputArgument]
    ) -> InputSetResponse:
        """Save inputs under a name."""
        ...

    async def delete(self, plan_id: str, name: str, /) -> None: ...


class LocalInputSets:
    """The saved inputs of a service in this process."""

    def __init__(self, service: Service) -> None:
        self._catalogue, self._sets = service.catalogue, service.input_sets
        self.list, self.delete = service.input_sets.list, service.input_sets.delete

    async def save(
        self, flow: Flow, name: str, arguments: Sequence[InputArgument]
    ) -> InputSetResponse:
        """See ``InputSets.save``."""
        given = resolve_inputs(arguments, plan_of_flow(flow).graph, self._catalogue)
        return await self._sets.save(flow.plan_id, name, given)


class RemoteInputSets:
    """The saved inputs of a running service."""

    def __init__(self, client: AsyncClient) -> None:
        self._client, self.delete = client, client.delete_input_set

    async def list(self, plan_id: str, /) -> Sequence[InputSetResponse]:
        """See ``AsyncClient.input_sets``."""
        return (await self._client.input_sets(plan_id))["input_sets"]

    async def save(
        self, flow: Flow, name: str, arguments: Sequence[InputArgument]
    ) -> InputSetResponse:
        """See ``AsyncClient.save_input_set``."""
        types = (await self._client.node_types())["node_types"]
        entry_types = {each["node_type"] for each in types if each["entry"]}
        given = merge_inputs(arguments, plan_of_flow(flow).graph, entry_types)
        return await self._client.save_input_set(flow.plan_id, name, given)
