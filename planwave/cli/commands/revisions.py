"""``planwave edit`` and ``revisions``: changing a plan, and what it was before."""

from __future__ import annotations

import asyncio
import json as json_module
import os
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, cast

import typer

from planwave.cli import completion
from planwave.cli.commands.executions.browse import pagination_hint
from planwave.cli.context import CommandContext
from planwave.cli.errors import show_diagnostics
from planwave.cli.formatting import counted
from planwave.cli.inputs import read_source
from planwave.cli.lookup import find_execution, find_plan
from planwave.cli.options import ExecutionArgument, LimitOption, shared_options
from planwave.cli.prompts import Prompter, edit_text, terminal_prompter
from planwave.cli.views.revisions import revision_lines
from planwave.errors import GraphInvalid, InputError, PreconditionFailed
from planwave.graph.diagnostics import Diagnostic, errors_in
from planwave.graph.operations import Operation, ReplaceGraph, SetTitle
from planwave.graph.plan import without_ui
from planwave.graph.reading.document_text import parse_document_text
from planwave.service.plans.documents import foreign_finding, is_provider_error, plan_json
from planwave.service.plans.revisions import revision_summary
from planwave.validation import json_type

if TYPE_CHECKING:
    from planwave.cli.backends.backend import Backend, Queries
    from planwave.cli.console import CommandConsole
    from planwave.graph.model import Json
    from planwave.shapes.plans import PlanDocument
    from planwave.storage.records import PlanRecord, PlanRevision

_PROMPT: Final = "Enter: edit again, d: keep as a draft, q: give up: "
_DRAFT, _GIVE_UP = "d", "q"

PlanArgument = Annotated[
    str,
    typer.Argument(
        metavar="PLAN",
        autocompletion=completion.plans,
        help="A plan, by its id, its start or end, its name as a flow, an execution of it, or: last.",
        show_default=False,
    ),
]
FileOption = Annotated[
    str | None,
    typer.Option(
        "--file",
        metavar="FILE",
        help="Take the new graph from a file in place of the editor; - is stdin.",
    ),
]
DraftFlag = Annotated[
    bool, typer.Option("--draft", help="Keep a graph with errors as a draft, without a question.")
]
NoteOption = Annotated[
    str, typer.Option("--note", metavar="TEXT", help="A note on the revision: why it was made.")
]
RestoreOption = Annotated[
    int | None,
    typer.Option("--restore", metavar="N", min=1, help="Restore this revision, as a new one."),
]
ApproveRevisionOption = Annotated[
    int | None,
    typer.Option(
        "--approve",
        metavar="N",
        min=1,
        help="Approve this revision for all who call the flow, where approval is required.",
    ),
]


@shared_options(over_http=True)
def edit(
    ctx: CommandContext,
    name: PlanArgument,
    file: FileOption = None,
    draft: DraftFlag = False,
    note: NoteOption = "",
) -> None:
    """Edit the graph of a plan in $EDITOR; the result is a new revision.

    Errors are shown, and the editor opens again, until the graph has none or you give up. A graph with
    errors can be kept as a draft, which cannot be executed.

    For example:

    * `planwave edit last`
    * `planwave edit 09a2fd --file plan.json --note "cheaper model"`
    """
    source = None if file is None else read_source(file)
    session = _EditSession(ctx, note, keeps_drafts=draft)

    async def run() -> None:
        async with ctx.backend(ctx.settings()) as backend:
            plan = await backend.plans.get(await find_plan(backend, name))
            if source is None:
                await session.edit(backend, plan)
            else:
                await session.save_text(backend, plan, source.content)

    asyncio.run(run())


@shared_options(over_http=True)
def revisions(
    ctx: CommandContext,
    name: PlanArgument,
    restore: RestoreOption = None,
    approve: ApproveRevisionOption = None,
    limit: LimitOption = 20,
) -> None:
    """List the revisions of a plan, newest first; or restore or approve one of them.

    For example:

    * `planwave revisions last`
    * `planwave revisions 09a2fd --restore 2`
    * `planwave revisions triage --approve 3`
    """
    console = ctx.console()
    if restore is not None and approve is not None:
        hint = "give one of them"
        raise InputError("--restore and --approve are two changes", code="usage", hint=hint)
    if approve is not None:
        _report_approved(console, asyncio.run(_approved(ctx, name, approve)), approve)
        return
    if restore is not None:
        report_saved(console, asyncio.run(_restored(ctx, name, restore)))
        return

    async def read(queries: Queries) -> tuple[str, Sequence[PlanRevision]]:
        plan_id = await find_plan(queries, name)
        return plan_id, await queries.revisions.list(plan_id, limit=limit + 1)

    plan_id, records = ctx.read(read)
    if console.json:
        listed = [revision_summary(each) for each in records[:limit]]
        console.result({"plan_id": plan_id, "revisions": listed})
        return
    console.lines(revision_lines(records[:limit]))
    if len(records) > limit:
        pagination_hint(console, ctx, f"revisions {name}", limit)


@shared_options(over_http=True)
def promote(
    ctx: CommandContext,
    name: ExecutionArgument,
    note: NoteOption = "",
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Also where the plan was changed since: these changes go to an older revision.",
        ),
    ] = False,
) -> None:
    """Make what ran, such as a fork, the newest revision of its plan.

    It is refused where the plan was changed after the revision that was forked. For example:

    * `planwave promote last`
    * `planwave promote 09a2fd --note "fewer words"`
    """

    async def keep() -> PlanRecord:
        async with ctx.backend(ctx.settings()) as backend:
            record = await backend.executions.get(await find_execution(backend, name))
            present = None
            if force and record.plan_id is not None:
                present = {(await backend.plans.get(record.plan_id)).hash}
            try:
                return await backend.revisions.promote(
                    record.execution_id, expected=present, author="person", note=note
                )
            except PreconditionFailed as error:
                again = ctx.command_hint(f"promote {record.execution_id} --force")
                error.hint = f"look at what was changed since; to go on from this run: {again}"
                raise

    report_saved(ctx.console(), asyncio.run(keep()))


async def _restored(ctx: CommandContext, name: str, revision: int) -> PlanRecord:
    async with ctx.backend(ctx.settings()) as backend:
        plan = await backend.plans.get(await find_plan(backend, name))
        return await backend.revisions.restore(
            plan.plan_id, revision, expected={plan.hash}, author="person"
        )


async def _approved(ctx: CommandContext, name: str, revision: int) -> PlanRecord:
    async with ctx.backend(ctx.settings()) as backend:
        plan_id = await find_plan(backend, name)
        return await backend.revisions.approve(plan_id, revision, expected=None)


def _report_approved(console: CommandConsole, plan: PlanRecord, revision: int) -> None:
    if console.json:
        console.result(_plan_json(plan))
        return
    console.text(
        f"{console.glyph('completed')} revision {revision} of {plan.plan_id} is approved; callers start "
        f"revision {plan.live_revision}"
    )


class _Edited(NamedTuple):
    """An edited text: its diagnostics, and the operations that store it; none if it is no graph."""

    diagnostics: Sequence[Diagnostic]
    operations: Sequence[Operation] = ()

    @property
    def errors(self) -> Sequence[Diagnostic]:
        return [each for each in errors_in(self.diagnostics) if not is_provider_error(each)]


class _EditSession:
    """One change of a plan by a person."""

    def __init__(self, ctx: CommandContext, note: str, *, keeps_drafts: bool) -> None:
        self._ctx = ctx
        self._console = ctx.console()
        self._note = note
        self._keeps_drafts = keeps_drafts

    async def edit(self, backend: Backend, plan: PlanRecord) -> None:
        """Open the editor until the graph can be stored, or the person gives up.

        Raises:
            GraphInvalid: It has errors, and there is no terminal to ask at.
            PreconditionFailed: The plan was changed meanwhile.
        """
        prompter = terminal_prompter(self._console)
        before = text = _as_text(plan)
        is_over = False
        while not is_over:
            text = await (edit_text if prompter is None else prompter.edit)(text, ".json")
            if text.strip() == before.strip():
                self._report_unchanged(plan)
                return
            try:
                is_over = await self._save_or_ask(backend, plan, text, prompter)
            except (GraphInvalid, PreconditionFailed) as error:
                # The errors of a graph are listed with their hints.
                is_listed = isinstance(error, GraphInvalid) or error.hint is None
                hint = "" if is_listed else f"{error.hint}; "
                error.hint = f"{hint}the text is kept in {_save_to_file(text)}"
                raise

    async def _save_or_ask(
        self, backend: Backend, plan: PlanRecord, text: str, prompter: Prompter | None
    ) -> bool:
        """Store a text, or ask what to do about its errors; return whether all is done."""
        while True:
            try:
                await self.save_text(backend, plan, text.encode())
            except GraphInvalid as error:
                if prompter is None:
                    raise
                answer = await self._ask(prompter, error)
            else:
                return True
            self._keeps_drafts = answer == _DRAFT
            if answer == _GIVE_UP:
                self._console.text(
                    f"Nothing was changed. The text is kept in {_save_to_file(text)}"
                )
            if answer != _DRAFT:
                return answer == _GIVE_UP

    async def save_text(self, backend: Backend, plan: PlanRecord, text: bytes) -> None:
        """Store a text as a new revision of a plan.

        Raises:
            GraphInvalid: It has errors, and is not to be kept as a draft.
        """
        edited = await _read(backend, plan, text)
        if edited.errors and not (self._keeps_drafts and edited.operations):
            raise GraphInvalid(edited.diagnostics)
        saved = await backend.plans.edit(
            plan.plan_id, edited.operations, expected={plan.hash}, author="person", note=self._note
        )
        if (saved.hash, saved.title) == (plan.hash, plan.title):
            self._report_unchanged(plan)
        else:
            report_saved(self._console, saved)

    async def _ask(self, prompter: Prompter, error: GraphInvalid) -> str:
        """Show errors and return what the person wants to do."""
        self._console.error(counted(len(errors_in(error.diagnostics)), "error"))
        show_diagnostics(self._console, error.diagnostics)
        line = await prompter.read_line(_PROMPT)
        return _GIVE_UP if line is None else line.strip().lower()

    def _report_unchanged(self, plan: PlanRecord) -> None:
        if self._console.json:
            self._console.result(_plan_json(plan))
        else:
            self._console.text("Nothing was changed.")


async def _read(backend: Backend, plan: PlanRecord, text: bytes) -> _Edited:
    """Check a text as a person edited it: a title, nodes and edges."""
    if (foreign := foreign_finding(text)) is not None:
        return _Edited([foreign])
    try:
        parsed: Json = parse_document_text(text)
    except GraphInvalid as error:
        return _Edited(error.diagnostics)
    if not isinstance(parsed, dict):
        message = f"a graph must be an object, got {json_type(parsed)}"
        return _Edited([Diagnostic("invalid-field", "error", message)])
    document = cast("dict[str, Json]", parsed)
    title = document.get("title", plan.title)
    if not isinstance(title, str):
        message = f"title must be a string, got {json_type(title)}"
        return _Edited([Diagnostic("invalid-field", "error", message, "/title")])
    graph = {name: value for name, value in document.items() if name in ("nodes", "edges")}
    operations: list[Operation] = [ReplaceGraph(graph)]
    if title != plan.title:
        operations.append(SetTitle(title))
    return _Edited(await backend.check(document), operations)


def _as_text(plan: PlanRecord) -> str:
    """Return the part of a plan that a person edits; positions of nodes are no part of it."""
    document = {
        "title": plan.title,
        "nodes": [without_ui(node) for node in plan.document["nodes"]],
        "edges": plan.document["edges"],
    }
    return json_module.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _save_to_file(text: str) -> str:
    """Write a text to a file that is not deleted, so that no work is lost; return its path."""
    number, path = tempfile.mkstemp(prefix="planwave-edit-", suffix=".json")
    with os.fdopen(number, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def _plan_json(plan: PlanRecord) -> PlanDocument:
    return plan_json(plan, plan.document.get("status", "draft"))


def report_saved(console: CommandConsole, plan: PlanRecord) -> None:
    """Write that a plan has a new revision."""
    document = plan.document
    if console.json:
        console.result(_plan_json(plan))
        return
    errors = [each for each in document["diagnostics"] if each["severity"] == "error"]
    state = f": a draft with {counted(len(errors), 'error')}, which cannot be executed"
    console.text(
        f"{console.glyph('completed')} {plan.plan_id} is at revision {document['revision']}"
        + (state if errors else "")
    )
