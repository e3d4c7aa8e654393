"""``planwave answer``: send a person's answer to an execution that waits for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from planwave.cli import completion
from planwave.cli.commands.executions.control import CommandResult, exit_with, send_command
from planwave.cli.context import CommandContext
from planwave.cli.formatting import asker_of, json_object, one_line, truncate
from planwave.cli.inputs import parse_json, read_json_file
from planwave.cli.options import ExecutionArgument, shared_options
from planwave.cli.prompts import ask, terminal_prompter
from planwave.cli.signals import Interrupt, Interrupted
from planwave.errors import Conflict, Gone, InputError
from planwave.events import OpenRequest
from planwave.events.request_text import is_timer, request_text
from planwave.service.executions.answers import validate_answer

if TYPE_CHECKING:
    from planwave.cli.backends.backend import Backend
    from planwave.graph.model import Json

_QUESTION_CHARS: Final = 60
_FILE_PREFIX: Final = "@"
_BEGINS_JSON: Final = f'{_FILE_PREFIX}{{["-0123456789'
"""What begins so is JSON, or meant to be: an error in it is shown, and it is not sent as a text."""


RequestArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="REQUEST",
        autocompletion=completion.requests,
        help="The request to answer, if several are open.",
        show_default=False,
    ),
]
DecisionOption = Annotated[
    str | None,
    typer.Option(
        "--decision",
        metavar="NAME",
        help="The decision: an action of the request. [default: ask on the terminal]",
    ),
]
NoteOption = Annotated[
    str | None,
    typer.Option("--note", metavar="TEXT", help="A note that is stored with the answer."),
]
ValueOption = Annotated[
    str | None,
    typer.Option(
        "--value",
        metavar="VALUE",
        help="JSON, or a text: a value in place of the one shown, the result of an interrupted step, or the limits of a "
        "raised budget; @FILE reads a file. Without a decision, the whole answer.",
    ),
]
FormOption = Annotated[
    str | None,
    typer.Option("--form", metavar="JSON", help="The form, filled in; @FILE reads a file."),
]


@shared_options(over_http=True)
def answer(
    ctx: CommandContext,
    name: ExecutionArgument,
    request: RequestArgument = None,
    decision: DecisionOption = None,
    note: NoteOption = None,
    value: ValueOption = None,
    form: FormOption = None,
) -> None:
    """Answer a request that an execution waits for; the execution continues at once.

    Without `--decision` the command asks on the terminal. A server or a command in another terminal
    that uses the storage directory continues the execution; without one, this command runs it
    itself, until it ends or waits again.

    For example:

    * `planwave answer last`
    * `planwave answer 09a2fd r17 --decision approve --note "well done"`
    * `planwave answer last --decision raise --value '{"usd": 10}'`
    * `planwave answer last --decision approve --value @letter.json --form '{"copies": 2}'`
    """
    answer_box = _answer_from_options(decision, note, value, form)

    async def tell(
        backend: Backend, execution_id: str, interrupt: Interrupt
    ) -> CommandResult | None:
        return await answer_request(ctx, backend, interrupt, execution_id, request, answer_box)

    exit_with(send_command(ctx, name, tell))


async def answer_request(
    ctx: CommandContext,
    backend: Backend,
    interrupt: Interrupt,
    execution_id: str,
    request_id: str | None,
    answer_box: tuple[Json] | None = None,
) -> CommandResult | None:
    """Answer a request of an execution; without an answer, ask for it on the terminal."""
    console, requests = ctx.console(), await backend.executions.requests(execution_id)
    chosen = _find_request(ctx, execution_id, requests, request_id)
    if chosen is None:  # not open: the backend raises the error that says why
        answer = None if answer_box is None else answer_box[0]
        try:
            following = await backend.answer(execution_id, str(request_id), answer)
        except (Conflict, Gone) as error:
            error.hint = error.hint or _explain_hint(ctx, execution_id)
            raise
        return _answer_result(ctx, execution_id, str(request_id), following)
    if answer_box is None:
        person = terminal_prompter(console)
        if person is None:
            raise _answer_required(chosen)
        try:
            name, graph = asker_of(chosen.path, chosen.request), None
            if chosen.path is None:
                graph = (await backend.executions.document(execution_id)).get("graph")
            asking = ask(console, person, chosen, name, graph)
            answer_box = await interrupt.cancel_on_signal(asking)
        except Interrupted as left:
            left.message = "left; the question stays open"
            raise
        if answer_box is None:
            console.note("the question stays open")
            return None
    checked = validate_answer(chosen.request, answer_box[0])  # a service reports one error only
    following = await backend.answer(execution_id, chosen.request_id, checked)
    return _answer_result(ctx, execution_id, chosen.request_id, following)


def _answer_result(
    ctx: CommandContext, execution_id: str, request_id: str, following: str
) -> CommandResult:
    """Return the effect of an answer; ``following`` is the new execution of an edited plan."""
    done = f"Answered {request_id} of {execution_id}"
    if following != execution_id:
        done += f"; execution {following} asks for the edited plan"
    return CommandResult(
        "completed",
        done,
        f"Watch it with: {ctx.command_hint(f'watch {following}')}",
        json_fields={"request_id": request_id},
        execution_id=following,
    )


def _find_request(
    ctx: CommandContext, execution_id: str, requests: Sequence[OpenRequest], request_id: str | None
) -> OpenRequest | None:
    """Return the request to answer; None if the request with the given id is not open.

    Raises:
        Conflict: ``nothing-asked``: the execution has no open request, not even a timer.
        InputError: ``ambiguous-request``: several requests are open.
    """
    if request_id is not None:
        return next((each for each in requests if each.request_id == request_id), None)
    requests = [each for each in requests if not is_timer(each.request)] or requests
    if not requests:
        raise Conflict(
            f"execution {execution_id} has no open request",
            code="nothing-asked",
            hint=_explain_hint(ctx, execution_id),
        )
    if len(requests) == 1:
        return requests[0]
    named = ", ".join(f"{each.request_id} ({_question_of(each)})" for each in requests)
    raise InputError(
        f"execution {execution_id} asks {len(requests)} questions",
        code="ambiguous-request",
        hint=f"name one of them: {named}",
    )


def _explain_hint(ctx: CommandContext, execution_id: str) -> str:
    return f"see its steps: {ctx.command_hint(f'explain {execution_id}')}"


def _question_of(request: OpenRequest) -> str:
    asker = asker_of(request.path, request.request)
    return truncate(f"{asker}: {request_text(request.request)}", _QUESTION_CHARS)


def _answer_required(request: OpenRequest) -> InputError:
    actions = [one_line(str(each)) for each in json_object(request.request).get("actions") or ()]
    way = " or ".join(f"--decision {each}" for each in actions) or "--value JSON"
    return InputError(
        f"{request.request_id} asks: {_question_of(request)}",
        code="usage",
        hint=f"no terminal to ask on; pass {way}",
    )


def _answer_from_options(
    decision: str | None, note: str | None, value: str | None, form: str | None
) -> tuple[Json] | None:
    """Return the answer given by options, in a tuple; None without these options.

    Raises:
        InputError: A value is not JSON, or its file cannot be read.
        NotFound: There is no such file.
    """
    fields: dict[str, Json] = {"decision": decision, "note": note}
    fields = {name: text for name, text in fields.items() if text is not None}
    if value is not None:
        fields["value"] = _json_or_text(value)
    if form is not None:
        fields["form"] = _parse_option(form, "--form")
    if not fields:
        return None
    return (fields["value"],) if fields.keys() == {"value"} else (fields,)


def _json_or_text(value: str) -> Json:
    """Return a value as JSON, or as the text that it is: the request says whether it takes a text."""
    begins_as_json = value[:1] in _BEGINS_JSON or not value.strip()
    return _parse_option(value, "--value") if begins_as_json or _is_word(value) else value


def _is_word(value: str) -> bool:
    return value.strip() in ("true", "false", "null")


def _parse_option(written: str, option: str) -> Json:
    if written.startswith(_FILE_PREFIX):
        return parse_json(read_json_file(written.removeprefix(_FILE_PREFIX)), option)
    return parse_json(written, option)
