"""The ``planwave`` command: its options, its commands, and the one place where errors are shown."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer
from typer.core import TyperGroup

from planwave.cli.commands.chat import chat
from planwave.cli.commands.check import check
from planwave.cli.commands.executions.answer import answer
from planwave.cli.commands.executions.browse import ls, show
from planwave.cli.commands.executions.control import cancel, pause, resume
from planwave.cli.commands.executions.diff import diff
from planwave.cli.commands.executions.explain import explain
from planwave.cli.commands.executions.forks import fork, retry
from planwave.cli.commands.executions.watch import watch
from planwave.cli.commands.flows import flow_app
from planwave.cli.commands.maintenance import audit_app, backup, delete, prune
from planwave.cli.commands.mcp import mcp
from planwave.cli.commands.models import doctor, model_app
from planwave.cli.commands.nodes import nodes
from planwave.cli.commands.notifications import notification_app
from planwave.cli.commands.revisions import edit, revisions
from planwave.cli.commands.run import exec_, plan, run
from planwave.cli.commands.serve import serve
from planwave.cli.commands.tokens import token_app
from planwave.cli.commands.tools import tools
from planwave.cli.commands.triggers import trigger_app
from planwave.cli.commands.trust import trust
from planwave.cli.console import CommandConsole, logs_as_notes
from planwave.cli.context import CommandContext, Factories
from planwave.cli.errors import (
    ExitCode,
    exit_code_of,
    internal_error,
    show_error,
    system_error,
    usage_error,
)
from planwave.cli.options import (
    JSON_FLAG,
    ConfigOption,
    ImportOption,
    JsonFlag,
    ModelOption,
    ProviderOption,
    StorageOption,
)
from planwave.cli.signals import Interrupted, report_interrupts
from planwave.errors import PlanwaveError
from planwave.redaction import NOTHING_SECRET, Redactor
from planwave.settings import DEBUG_VARIABLE

if TYPE_CHECKING:
    from typer.models import Context

_JSON_REQUESTED: Final = "planwave.json"


class _CommandGroup(TyperGroup):
    """The root command: reports every failure in one place and maps it to an exit code.

    A failure is reported as a sentence, with ``--json`` also as a JSON object.
    """

    def main(self, *args: Any, **more: Any) -> Any:
        try:
            return super().main(*args, **more)
        except OSError as error:  # not even the help, or an error, could be written
            with suppress(OSError):
                show_error(CommandConsole(), system_error(error))
            sys.exit(ExitCode.FAILED)
        finally:
            _discard_broken_streams()

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **extra: Any) -> Any:
        is_json = JSON_FLAG in args
        try:
            ctx = super().make_context(info_name, args, *more, **extra)
        except typer.TyperException as error:
            raise _reported(CommandConsole(json=is_json), error) from error
        ctx.meta[_JSON_REQUESTED] = is_json
        return ctx

    def invoke(self, ctx: Any) -> Any:
        report_interrupts()
        try:
            with logs_as_notes(lambda: _console_of(ctx), lambda text: _redactor_of(ctx).text(text)):
                return super().invoke(ctx)
        except BaseException as error:
            redactor = _redactor_of(ctx)
            raise _reported(_console_of(ctx), _root_error(error), redactor) from error


def _reported(
    console: CommandConsole, error: BaseException, redactor: Redactor = NOTHING_SECRET
) -> BaseException:
    """Show a failure and return the exit to raise for it; return any other exception unchanged."""
    failure = _as_planwave_error(error)
    if failure is None:
        return error
    redactor.clean(failure)
    show_error(console, failure)
    return typer.Exit(exit_code_of(failure))


def _as_planwave_error(error: BaseException) -> PlanwaveError | None:
    match error:
        case PlanwaveError():
            return error
        case KeyboardInterrupt():
            return Interrupted()
        case typer.Exit() | typer.Abort() | BrokenPipeError():  # the reader closed the pipe
            return None
        case typer.TyperException():
            return usage_error(error) if error.format_message() else None  # without: help was shown
        case OSError():
            return system_error(error)
        case Exception() if not os.environ.get(DEBUG_VARIABLE):
            return internal_error(
                error, f"set {DEBUG_VARIABLE}=1 to see where, and please report it"
            )
        case _:
            return None


def _root_error(error: BaseException) -> BaseException:
    """Return the error; of an exception group, the first error inside it."""
    while inner := cast("tuple[BaseException, ...]", getattr(error, "exceptions", ())):
        error = inner[0]
    return error


def _discard_broken_streams() -> None:
    """Redirect streams that cannot be flushed to the null device; Python would complain at exit."""
    for stream in filter(None, (sys.__stdout__, sys.__stderr__)):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _console_of(ctx: Context) -> CommandConsole:
    context: Any = ctx.obj
    if isinstance(context, CommandContext) and context.json:
        return context.console()
    return CommandConsole(json=bool(ctx.meta.get(_JSON_REQUESTED)))


def _redactor_of(ctx: Context) -> Redactor:
    """Return what takes secrets out of what is shown; there are none before settings are read."""
    return ctx.obj.redactor if isinstance(ctx.obj, CommandContext) else NOTHING_SECRET


app = typer.Typer(
    name="planwave",
    cls=_CommandGroup,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=(
        'Start with: `planwave run "Compare three ways to store time series data"`. '
        "Exit codes: 0 ok, 1 failed, 2 usage, 3 invalid plan, 4 no provider, 130 interrupted"
    ),
)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"planwave {version('planwave')}")
        raise typer.Exit


@app.callback()
def planwave(
    ctx: typer.Context,
    json: JsonFlag = False,
    storage: StorageOption = None,
    config: ConfigOption = None,
    node_modules: ImportOption = None,
    provider: ProviderOption = None,
    model: ModelOption = None,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Turn a goal into a plan, run the plan in parallel waves, store every result as JSON.

    A language model writes a graph of steps for your goal. planwave checks and shows the graph, runs
    independent steps at the same time and stores every result. Without an API key it uses a model
    that runs on this machine; with OPENAI_API_KEY or ANTHROPIC_API_KEY set it uses that provider.
    """
    composition: Factories = ctx.obj
    modules = list(node_modules or ())
    ctx.obj = CommandContext(composition, json, storage, modules, provider, model, config)


app.command()(run)
app.command()(plan)
app.command("exec")(exec_)
app.command()(check)
app.command()(edit)
app.command()(revisions)
app.command()(ls)
app.command()(show)
app.command()(explain)
app.command()(diff)
app.command()(watch)
app.command()(answer)
app.command()(pause)
app.command()(resume)
app.command()(cancel)
app.command()(retry)
app.command()(fork)
app.command()(serve)
app.command()(mcp)
app.add_typer(flow_app, name="flow")
app.add_typer(trigger_app, name="triggers")
app.add_typer(notification_app, name="notifications")
app.add_typer(token_app, name="tokens")
app.add_typer(audit_app, name="audit")
app.command()(chat)
app.add_typer(model_app, name="model")
app.command()(nodes)
app.command()(tools)
app.command()(doctor)
app.command()(trust)
app.command()(backup)
app.command()(delete)
app.command()(prune)
