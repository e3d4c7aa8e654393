"""The ``planwave`` command: its options, its commands, and the one place where errors are shown."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer
from typer.core import TyperGroup

from planwave.cli.browsing import ls, show
from planwave.cli.checking import check
from planwave.cli.errors import exit_code_of, show_error
from planwave.cli.interrupt import Interrupted
from planwave.cli.machine import doctor, model_app
from planwave.cli.options import (
    Composition,
    Invocation,
    JsonFlag,
    ModelOption,
    ProviderOption,
    StorageOption,
)
from planwave.cli.running import exec_, plan, run
from planwave.cli.screen import Screen
from planwave.errors import PlanwaveError

if TYPE_CHECKING:
    from typer.models import Context

DEBUG_VARIABLE: Final = "PLANWAVE_DEBUG"


class _Commands(TyperGroup):
    """Turns every failure into a sentence and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return self._invoke(ctx)
        except Interrupted as stopped:
            raise typer.Exit(stopped.exit_code) from stopped
        except KeyboardInterrupt as stopped:
            _screen(ctx).error("interrupted")
            raise typer.Exit(130) from stopped
        except PlanwaveError as error:
            show_error(_screen(ctx), error)
            raise typer.Exit(exit_code_of(error)) from error
        except (typer.Exit, typer.Abort, typer.TyperException, OSError):
            raise
        except Exception as error:
            if os.environ.get(DEBUG_VARIABLE):
                raise
            _screen(ctx).error(
                f"this is a fault in planwave: {type(error).__name__}: {error}",
                f"set {DEBUG_VARIABLE}=1 to see where, and please report it",
            )
            raise typer.Exit(1) from error

    def _invoke(self, ctx: Any) -> Any:
        """Run the command; a group of one error, as task groups raise it, is that error."""
        try:
            return super().invoke(ctx)
        except BaseExceptionGroup as group:
            raise _first_of(group) from group


def _first_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = group
    while inner := cast("tuple[BaseException, ...]", getattr(error, "exceptions", ())):
        error = inner[0]
    return error


def _screen(ctx: Context) -> Screen:
    asked: Any = ctx.obj
    return asked.screen() if isinstance(asked, Invocation) else Screen()


app = typer.Typer(
    name="planwave",
    cls=_Commands,
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


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"planwave {version('planwave')}")
        raise typer.Exit


@app.callback()
def planwave(
    ctx: typer.Context,
    json: JsonFlag = False,
    storage: StorageOption = None,
    provider: ProviderOption = None,
    model: ModelOption = None,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Turn a goal into a plan, run the plan in parallel waves, keep everything as JSON.

    A language model writes a graph of steps for your goal; planwave checks it, shows it, runs
    independent steps at the same time and keeps every result. Without an API key it uses a model
    that runs on this machine; with OPENAI_API_KEY or ANTHROPIC_API_KEY set it uses that provider.
    """
    composition: Composition = ctx.obj
    ctx.obj = Invocation(composition, json, storage, provider, model)


app.command()(run)
app.command()(plan)
app.command("exec")(exec_)
app.command()(check)
app.command()(ls)
app.command()(show)
app.add_typer(model_app, name="model")
app.command()(doctor)
