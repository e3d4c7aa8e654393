"""The ``planwave`` command: its options, its commands, and the one place where errors are shown."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperGroup

from planwave.cli.console import CommandConsole, logs_as_notes
from planwave.cli.context import CommandContext, Factories
from planwave.cli.errors import (
    ExitCode,
    exit_code_of,
    internal_error,
    root_error,
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
    TokenFileOption,
    UrlOption,
)
from planwave.cli.signals import Interrupted, report_interrupts
from planwave.errors import PlanwaveError
from planwave.redaction import NOTHING_SECRET, Redactor
from planwave.settings import DEBUG_VARIABLE

if TYPE_CHECKING:
    from typer.models import Context

_JSON_REQUESTED: Final = "planwave.json"
_HELP_OPTIONS: Final = ["-h", "--help"]
_COMMANDS: Final = {
    "run": "run:run",
    "plan": "run:plan",
    "exec": "run:exec_",
    "check": "check:check",
    "export": "export:export_",
    "import": "import_:import_",
    "edit": "revisions:edit",
    "revisions": "revisions:revisions",
    "refine": "refine:refine",
    "ls": "executions.browse:ls",
    "show": "executions.browse:show",
    "explain": "executions.explain:explain",
    "label": "executions.labels:label",
    "spend": "spend:spend",
    "diff": "executions.diff:diff",
    "watch": "executions.watch:watch",
    "logs": "executions.logs:logs",
    "answer": "executions.answer:answer",
    "link": "executions.links:link",
    "pause": "executions.control:pause",
    "resume": "executions.control:resume",
    "cancel": "executions.control:cancel",
    "retry": "executions.forks:retry",
    "fork": "executions.forks:fork",
    "revise": "executions.changes:revise",
    "replan": "executions.changes:replan",
    "promote": "revisions:promote",
    "serve": "serve:serve",
    "worker": "serve:worker",
    "mcp": "mcp:mcp",
    "flow": "flows:flow_app",
    "triggers": "triggers:trigger_app",
    "notifications": "notifications:notification_app",
    "tokens": "tokens:token_app",
    "audit": "maintenance:audit_app",
    "chat": "chat:chat",
    "model": "models:model_app",
    "nodes": "nodes:nodes",
    "tools": "tools:tools",
    "doctor": "models:doctor",
    "config": "config:config_app",
    "trust": "trust:trust",
    "backup": "maintenance:backup",
    "store": "stores:store_app",
    "migrate": "stores:migrate",
    "delete": "maintenance:delete",
    "prune": "maintenance:prune",
}
"""Where each command is, below ``planwave.cli.commands``, in the order of the help."""


class _Commands(dict[str, Any]):
    """The commands by name; a module of commands is imported when a command of it is looked at."""

    def __init__(self) -> None:
        super().__init__(dict.fromkeys(_COMMANDS))

    def __getitem__(self, name: str) -> Any:
        command = super().__getitem__(name)
        if command is None:
            command = self[name] = _load(name)
        return command

    def get(self, name: str, default: Any = None) -> Any:
        has = name in self
        return self[name] if has else default

    def items(self) -> Any:
        return [(name, self[name]) for name in self]


def _load(name: str) -> Any:
    module, _, attribute = _COMMANDS[name].partition(":")
    target = getattr(import_module(f"planwave.cli.commands.{module}"), attribute)
    if not isinstance(target, typer.Typer):
        function, target = target, typer.Typer(add_completion=False)
        target.command(name)(function)
    target.rich_markup_mode = "markdown"
    command = typer.main.get_command(target)
    command.name = name
    _leave_out_types(command)
    return command


def _leave_out_types(command: Any) -> None:
    """Leave the names of Python types out of the help: a name or a metavar says more.

    Of a command and, but for the root command, of those below it.
    """
    for each in command.get_params(typer.Context(command, help_option_names=_HELP_OPTIONS)):
        if each.param_type_name == "argument":
            each.display_type_rich = _no_type  # Typer shows it beside the metavar
        elif each.is_flag and each.metavar is None:
            each.metavar = ""
    below = getattr(command, "commands", {})
    for inner in () if isinstance(command, _CommandGroup) else dict(below).values():
        _leave_out_types(inner)


def _no_type(ctx: Context) -> None:
    return None


class _CommandGroup(TyperGroup):
    """The root command: reports every failure in one place and maps it to an exit code.

    A failure is reported as a sentence, with ``--json`` also as a JSON object.
    """

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Commands()

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _leave_out_types(self)
        super().format_help(ctx, formatter)

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
            raise _reported(_console_of(ctx), root_error(error), redactor) from error


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
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": _HELP_OPTIONS},
    epilog=(
        'Start with: `planwave run "Compare three ways to store time series data"`. '
        "Exit codes: 0 ok, 1 failed, 2 usage, 3 invalid plan, 4 no provider, 5 service gone, "
        "130 interrupted"
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
    url: UrlOption = None,
    token_file: TokenFileOption = None,
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
    ctx.obj = CommandContext(
        composition, json, storage, modules, provider, model, config, url, token_file
    )
