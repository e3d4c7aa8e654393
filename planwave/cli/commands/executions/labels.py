"""``planwave label``: what people call an execution."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planwave.cli.context import CommandContext
from planwave.cli.lookup import find_execution
from planwave.cli.options import ExecutionArgument, shared_options
from planwave.errors import InputError
from planwave.service.executions.labels import labels_json

if TYPE_CHECKING:
    from planwave.client import AsyncClient
    from planwave.service.service import Service
    from planwave.shapes.executions import LabelsResponse


NewNameOption = Annotated[
    str | None,
    typer.Option("--name", metavar="TEXT", help='In place of its title; "" for the title.'),
]
TagsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--tag",
        metavar="TAG",
        help='A tag, in place of those before; "" for none. Can be repeated.',
    ),
]
NoteOption = Annotated[str | None, typer.Option("--note", metavar="TEXT", help="Any text.")]
StarOption = Annotated[bool | None, typer.Option("--star/--no-star", help="Whether it has a star.")]


@shared_options(over_http=True)
def label(
    ctx: CommandContext,
    name: ExecutionArgument,
    new_name: NewNameOption = None,
    tags: TagsOption = None,
    note: NoteOption = None,
    star: StarOption = None,
) -> None:
    """Name, tag, note or star an execution, to find it again with `planwave ls`.

    For example:

    * `planwave label last --name "Lisbon, second try" --tag travel --star`
    * `planwave label 09a2fd --note "the tram is missing"`
    """
    given = {
        "name": new_name,
        "tags": None if tags is None else [each for each in tags if each],
        "note": note,
        "starred": star,
    }
    changes = {field: value for field, value in given.items() if value is not None}
    if not changes:
        raise InputError(
            "nothing is to be changed", code="usage", hint="give --name, --tag, --note or --star"
        )

    async def change() -> LabelsResponse:
        async with ctx.backend(ctx.settings()) as backend:
            execution_id = await find_execution(backend, name)
            set_labels: Any = backend.choose(_locally, _remotely)
            return await set_labels(execution_id, changes)

    labels = asyncio.run(change())
    console = ctx.console()
    if console.json:
        console.result(labels)
        return
    said = [labels["name"] or "", *(f"#{tag}" for tag in labels["tags"]), labels["note"]]
    star_text = "starred" if labels["starred"] else ""
    console.verbatim(
        f"{console.glyph('completed')} "
        + (", ".join(filter(None, [*said, star_text])) or "no labels")
    )


def _locally(service: Service) -> Any:
    async def change(execution_id: str, changes: dict[str, Any]) -> LabelsResponse:
        return labels_json(await service.executions.label(execution_id, changes))

    return change


def _remotely(client: AsyncClient) -> Any:
    return client.label
