"""Command line options and arguments, and the context of one command."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import (
    Annotated,
    Any,
    Concatenate,
    Final,
)

import typer

from planwave.cli import completion
from planwave.cli.context import CommandContext, Untrusted
from planwave.executor.options import MOST_REPLANS

_GLOBAL_OPTIONS_PANEL = "Options of every command"
JSON_FLAG: Final = "--json"
MAX_LISTED: Final = 1000

JsonFlag = Annotated[
    bool,
    typer.Option(
        JSON_FLAG,
        metavar="",
        help="Write exactly one JSON object to stdout, at the end; progress goes to stderr.",
        rich_help_panel=_GLOBAL_OPTIONS_PANEL,
    ),
]
StorageOption = Annotated[
    str | None,
    typer.Option(
        "--storage",
        metavar="DIR",
        help="The directory of plans, executions and JSON results. [default: ./storage]",
        rich_help_panel=_GLOBAL_OPTIONS_PANEL,
    ),
]
ConfigOption = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="A settings file to use, beside ./planwave.toml. [default: PLANWAVE_CONFIG]",
        rich_help_panel=_GLOBAL_OPTIONS_PANEL,
    ),
]
UrlOption = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="Use the service at this address, in place of a directory. [default: PLANWAVE_URL]",
        rich_help_panel=_GLOBAL_OPTIONS_PANEL,
    ),
]
TokenFileOption = Annotated[
    str | None,
    typer.Option(
        "--token-file",
        metavar="FILE",
        help="A file with the token of that service. [default: the token in PLANWAVE_TOKEN]",
        rich_help_panel=_GLOBAL_OPTIONS_PANEL,
    ),
]
ImportOption = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        metavar="MODULE",
        help="A Python module with your own node types. Can be repeated.",
        rich_help_panel=_GLOBAL_OPTIONS_PANEL,
    ),
]
ProviderOption = Annotated[
    str | None,
    typer.Option(
        "--provider",
        metavar="NAME",
        autocompletion=completion.providers,
        help="openai, anthropic, local, or a name in planwave.toml. [default: the first available]",
        rich_help_panel=_GLOBAL_OPTIONS_PANEL,
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help="A model of that provider. [default: the provider's default]",
        rich_help_panel=_GLOBAL_OPTIONS_PANEL,
    ),
]


class Scheduling(StrEnum):
    """When nodes start."""

    EAGER = "eager"
    WAVES = "waves"


class OnFailure(StrEnum):
    """What happens to the other nodes when a node fails."""

    CONTINUE = "continue"
    STOP = "stop"


class StatusFilter(StrEnum):
    """The status of an execution."""

    STARTING = "starting"
    EXECUTING = "executing"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


GoalArgument = Annotated[
    str,
    typer.Argument(
        metavar="GOAL",
        help="The goal, in your own words; - reads it from stdin.",
        show_default=False,
    ),
]
AnswerOption = Annotated[
    list[str] | None,
    typer.Option(
        "--answer",
        metavar="QUESTION=ANSWER",
        help=r"An answer in place of one that the plan assumes; = in the question is \=. Repeatable.",
        show_default=False,
    ),
]
QuestionsOption = Annotated[
    bool | None,
    typer.Option(
        "--questions/--no-questions",
        help="Ask on the terminal what the goal leaves open, or take the assumed answers.",
        show_default="the setting ask_questions",
    ),
]
FileArgument = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="JSON or YAML: a graph {nodes, edges}, or a plan as `planwave plan --json` prints it; - for stdin.",
        show_default=False,
    ),
]
IdArgument = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        autocompletion=completion.executions_and_plans,
        help="An execution or plan, by its id, its start or end, or: last.",
        show_default=False,
    ),
]
SchedulingOption = Annotated[
    Scheduling,
    typer.Option(
        "--scheduling",
        help="eager: a step starts as soon as its inputs are there. waves: one wave after the other.",
    ),
]
OnFailureOption = Annotated[
    OnFailure,
    typer.Option(
        "--on-failure",
        help="continue: run all steps that do not depend on the failed step. stop: end early.",
    ),
]
MaxParallelOption = Annotated[
    int | None,
    typer.Option(
        "--max-parallel", min=1, metavar="N", help="Steps that run at the same time, at most."
    ),
]


def _above_zero(amount: float | None) -> float | None:
    if amount is not None and not 0 < amount < math.inf:
        raise typer.BadParameter("it has to be above 0")
    return amount


BudgetOption = Annotated[
    float | None,
    typer.Option(
        "--budget",
        callback=_above_zero,
        metavar="USD",
        help="Dollars that the run may use; then it asks for more. [default: the limit budget_usd]",
    ),
]
BudgetTokensOption = Annotated[
    int | None,
    typer.Option(
        "--budget-tokens",
        min=1,
        metavar="N",
        help="Tokens that the run may use. [default: the limit budget_tokens]",
    ),
]
ReplanOption = Annotated[
    int | None,
    typer.Option(
        "--replan",
        min=1,
        max=MOST_REPLANS,
        metavar="N",
        help="Have a model change the plan where a step fails, at most so many times.",
    ),
]
ReplanByStepsOption = Annotated[
    bool,
    typer.Option(
        "--replan-by-steps",
        help="Let steps ask for changes of the plan, too: agents get the tool change_plan for that.",
    ),
]
ApproveOption = Annotated[
    bool,
    typer.Option("--approve", help="Ask before the first step starts: approve, reject or edit."),
]
RunToOption = Annotated[
    list[str] | None,
    typer.Option(
        "--run-to",
        metavar="NODE",
        autocompletion=completion.flow_steps,
        help="Run only this step and the steps that it depends on. Can be repeated.",
    ),
]
RunFromOption = Annotated[
    list[str] | None,
    typer.Option(
        "--run-from",
        metavar="NODE",
        autocompletion=completion.flow_steps,
        help="Run only this step, the steps after it, and the steps that these depend on. Can be "
        "repeated.",
    ),
]
FlowArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME_OR_ID",
        autocompletion=completion.flows,
        help="A flow, by its name, its id, or the start or end of its id.",
        show_default=False,
    ),
]
InputOption = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        metavar="INPUT",
        help="The value of an entry step: TEXT, FIELD=TEXT where the step declares fields, NODE=TEXT, "
        "NODE:HANDLE=TEXT, a JSON object {node: {handle: value}}, or - to read a text from stdin. "
        "Can be repeated.",
    ),
]
InputsOption = Annotated[
    str | None,
    typer.Option(
        "--inputs",
        metavar="SAVED",
        autocompletion=completion.input_sets,
        help="Begin with the inputs that are saved under this name; --input changes some of them.",
    ),
]
SetResultOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set-result",
        metavar="NODE=TEXT",
        help="The result of any step, which does not run then: NODE=TEXT, NODE:HANDLE=TEXT, or a JSON "
        "object {node: {handle: value}}. Can be repeated.",
    ),
]
LimitOption = Annotated[
    int,
    typer.Option(
        "--limit", "-n", min=1, max=MAX_LISTED, metavar="N", help="The largest number of entries."
    ),
]
StatusOption = Annotated[
    StatusFilter | None,
    typer.Option(
        "--status",
        metavar="STATUS",
        help=f"Only executions with this status: {', '.join(StatusFilter)}.",
    ),
]
SearchOption = Annotated[
    str | None,
    typer.Option(
        "--search",
        metavar="TEXT",
        help="Only executions with these words in name, goal, tasks, result, tags or note, or with this id.",
    ),
]
TagOption = Annotated[
    str | None, typer.Option("--tag", metavar="TAG", help="Only executions with this tag.")
]
StarredOption = Annotated[
    bool | None,
    typer.Option("--starred/--no-starred", help="Only executions with a star, or without one."),
]
SinceOption = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="Only from this time or day on, ISO 8601, UTC."),
]
UntilOption = Annotated[
    str | None,
    typer.Option("--until", metavar="TIME", help="Only until this time or day, ISO 8601, UTC."),
]
NodeOption = Annotated[
    str | None,
    typer.Option(
        "--node",
        metavar="NODE",
        autocompletion=completion.steps,
        help="Print the whole result of one step, by its id, path or name.",
    ),
]


_JSON: Final = (JsonFlag, False)
_SHARED: Final = {
    "storage": (StorageOption, None),
    "config": (ConfigOption, None),
    "node_modules": (ImportOption, None),
    "url": (UrlOption, None),
    "token_file": (TokenFileOption, None),
}
_MODEL: Final = {"provider": (ProviderOption, None), "model": (ModelOption, None)}


def shared_options(
    *,
    with_model: bool = False,
    has_json: bool = True,
    untrusted: Untrusted = "ignore",
    over_http: bool = False,
) -> Callable[[Callable[Concatenate[CommandContext, ...], None]], Callable[..., None]]:
    """Give a command the options of every command, and its context in their place.

    The command's first parameter is its ``CommandContext``; the others are its own options and
    arguments. Typer reads the signature of what is returned. Options after the command override those
    before it, or add to a list.

    Args:
        with_model: Whether it also has ``--provider`` and ``--model``.
        has_json: Whether it has ``--json``.
        untrusted: See ``Untrusted``.
        over_http: Whether it works with the service at ``--url``; if not, it refuses this option.
    """
    shared = {**({"json": _JSON} if has_json else {}), **_SHARED, **(_MODEL if with_model else {})}
    added = [Parameter("typer_ctx", Parameter.KEYWORD_ONLY, annotation=typer.Context)]
    added += [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=option)
        for name, (option, default) in shared.items()
    ]

    def decorate(
        command: Callable[Concatenate[CommandContext, ...], None],
    ) -> Callable[..., None]:
        @wraps(command)
        def with_context(*, typer_ctx: typer.Context, **options: Any) -> None:
            ctx: CommandContext = typer_ctx.obj
            ctx.take({name: options.pop(name) for name in shared})
            ctx.untrusted = untrusted if ctx.service_url is None else "ignore"
            ctx.command, ctx.subcommand = typer_ctx.command_path, typer_ctx.invoked_subcommand
            ctx.check_url(over_http=over_http)
            command(ctx, **options)

        own = list(signature(command, eval_str=True).parameters.values())[1:]
        parameters = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in own]
        with_context.__annotations__ = {}  # they are in the signature, evaluated
        with_context.__signature__ = Signature([*parameters, *added])  # pyright: ignore[reportAttributeAccessIssue]
        return with_context

    return decorate


ExecutionArgument = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        autocompletion=completion.executions,
        help="An execution, by its id, its start or end, or: last.",
        show_default=False,
    ),
]


YesFlag = Annotated[
    bool,
    typer.Option(
        "--yes",
        "-y",
        metavar="",
        help="Take the proposal without a question, if it reaches nothing new.",
    ),
]
ProposalFlag = Annotated[
    bool, typer.Option("--dry-run", help="Show the proposal, and do not keep it.")
]
