"""Questions to the user at the terminal: a request goes in, a validated answer comes out."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
import termios
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, cast

from rich.text import Text

from planwave.cli.formatting import duration, json_object, json_text, one_line
from planwave.cli.inputs import parse_json
from planwave.cli.views.plan import REST, forecast_lines
from planwave.cli.views.revisions import proposal_lines
from planwave.errors import InputError, InvalidAnswer, reason_of
from planwave.events import OpenRequest
from planwave.events.budget import amount_text
from planwave.events.request_text import (
    EDIT,
    RAISE,
    is_budget_request,
    is_change_request,
    is_plan_approval,
    request_text,
)
from planwave.graph.model import Json
from planwave.service.executions.answers import validate_answer

if TYPE_CHECKING:
    from planwave.cli.console import CommandConsole

_EDIT: Final = "e"
_NOTE: Final = "+"
_YES: Final = ("y", "yes", "true")
_NO: Final = ("n", "no", "false")
_KINDS: Final = {"integer": "whole number", "number": "number", "boolean": "y or n"}
_VALUE_CHARS: Final = 4_000
"""A longer value would push the question off the screen; the editor shows all of it."""


class PromptResult(NamedTuple):
    """An answer, which may be null."""

    answer: Json


class _Skipped(Exception):
    """The user leaves the question open."""


_OMITTED: Final = object()


async def ask(
    console: CommandConsole,
    prompter: Prompter,
    request: OpenRequest,
    name: str,
    graph: Json | None = None,
) -> PromptResult | None:
    """Ask the user until an answer is valid; return None if the user leaves the request open.

    Args:
        console: The console that shows the question.
        prompter: Reads the user's input.
        request: The request to answer.
        name: The name of the step that made the request.
        graph: The graph of the plan to approve, for the action ``edit``.
    """
    _show_request(console, request, name)
    prompter.discard_typed()
    questions = _Questions(console, prompter, request.request, graph)
    while True:
        try:
            return PromptResult(validate_answer(request.request, await questions.answer()))
        except InvalidAnswer as error:
            for finding in error.diagnostics:
                console.note(finding.message + (f" ({finding.hint})" if finding.hint else ""))
        except _Skipped:
            return None


def _show_request(console: CommandConsole, request: OpenRequest, name: str) -> None:
    console.line()
    head = f"{console.glyph('waiting')} {one_line(name)} asks ({request.request_id})"
    console.text(Text(head, style="bold yellow"))
    console.markdown(request_text(request.request))
    forecast = json_object(json_object(request.request).get("forecast"))
    if is_plan_approval(request.request):
        console.texts(forecast_lines(console, forecast))
    if is_change_request(request.request):
        console.lines(list(proposal_lines(json_object(request.request))))
        console.texts(forecast_lines(console, forecast, REST))
    value = json_object(request.request).get("value")
    if value not in (None, ""):
        console.line(Text("Value", style="dim"))
        text = _as_text(value)
        console.text(text[:_VALUE_CHARS] + ("…" if len(text) > _VALUE_CHARS else ""))
    if request.timeout_s is not None:
        fields = json_object(request.request)
        action = fields.get("timeoutAction")
        becomes = "fails" if action is None and "timeoutAction" in fields else "continues"
        way = "" if action is None else f", with {action}"
        limit = f"Without an answer the step {becomes} after {duration(request.timeout_s)}{way}."
        console.text(Text(one_line(limit), style="dim"))
    console.text(Text("Ctrl-D leaves the question open, for planwave answer.", style="dim"))


class _Questions:
    """The questions that make up the answer to one request.

    Raises:
        _Skipped: From each question, if the user leaves it open.
    """

    def __init__(
        self, console: CommandConsole, person: Prompter, request: Json, graph: Json | None
    ) -> None:
        self._console, self._prompter = console, person
        fields = json_object(request)
        self._actions: list[str] = [str(each) for each in fields.get("actions") or ()]
        form = fields.get("form")
        self._form = cast("dict[str, Any]", form) if isinstance(form, dict) else None
        self._value: Json = fields.get("value")
        self._is_editable = fields.get("editable") is True
        self._is_interrupted = fields.get("kind") == "interrupted"
        self._graph = graph
        self._is_plan = is_plan_approval(request)
        is_budget = is_budget_request(request)
        self._limits = json_object(fields.get("limits") if is_budget else None)
        self._proposed = json_object(fields.get("proposed") if is_budget else None)

    async def answer(self) -> Json:
        """Ask all questions; return the answer, not yet validated."""
        if not self._actions and self._form is None:
            return _parse_json_or_text(await self._read_line("Answer (JSON, or text): "))
        answer: dict[str, Json] = await self._decision() if self._actions else {}
        if self._is_interrupted and answer.get("decision") == "give_result":
            answer["value"] = _parse_json_or_text(await self._read_line("Result (JSON, or text): "))
        if self._is_plan and answer.get("decision") == EDIT:
            self._graph = answer["value"] = await self._edit_value(self._graph)
        if self._limits and answer.get("decision") == RAISE:
            answer["value"] = await self._new_limits()
        if self._form is not None:
            answer["form"] = await self._fill_form(self._form)
        return answer

    async def _decision(self) -> dict[str, Json]:
        more: dict[str, Json] = {}
        can_edit = self._is_editable and _EDIT not in self._actions
        for number, action in enumerate(self._actions, start=1):
            self._console.line(f"  {number}  {action}")
        if can_edit:
            self._console.line(f"  {_EDIT}  edit the value first")
        self._console.line(f"  {_NOTE}  add a note")
        while True:
            line = (await self._read_line("Decision: ")).strip()
            if can_edit and line == _EDIT:
                more["value"] = await self._edit_value(more.get("value", self._value))
            elif line == _NOTE:
                more["note"] = (await self._read_line("Note: ")).strip()
            elif (chosen := _matching_action(line, self._actions)) is not None:
                return {"decision": chosen, **more}
            elif line:
                self._console.note(f"decisions are {', '.join(self._actions)}")

    async def _new_limits(self) -> Json:
        """Ask for the new limit of each amount of a budget; Enter takes what is proposed."""
        limits: dict[str, Json] = {**self._proposed}
        for name, most in {**self._limits, **self._proposed}.items():
            usual = amount_text(name, cast("float", most))
            while line := (await self._read_line(f"New limit, {name} (Enter: {usual}): ")).strip():
                try:
                    limits[name] = json.loads(line.removeprefix("$").replace(",", ""))
                    break
                except ValueError:
                    self._console.note("this is not a number")
        return limits

    async def _edit_value(self, value: Json) -> Json:
        """Return the value as the user edited it: a text as text, any other value as JSON."""
        kind, ending = ("text", ".txt") if isinstance(value, str) else ("JSON", ".json")
        try:
            if not self._prompter.has_editor:
                return _parse_new_value(value, await self._read_line(f"New value ({kind}): "))
            new_text = await self._prompter.edit(_as_text(value), ending)
            return _parse_new_value(value, new_text.removesuffix("\n"))
        except InputError as error:
            self._console.note(error.message)
            return value

    async def _fill_form(self, schema: Mapping[str, Any]) -> Json:
        """Ask for the fields of a form, one by one."""
        fields = json_object(schema.get("properties"))
        if not fields:
            return await self._read_json("Form (JSON): ")
        required = schema.get("required")
        needed: list[Any] = cast("list[Any]", required) if isinstance(required, list) else []
        form: dict[str, Json] = {}
        for name, field in fields.items():
            value = await self._field(name, json_object(field), name in needed)
            if value is not _OMITTED:
                form[name] = value
        return form

    async def _field(self, name: str, field: Mapping[str, Any], is_needed: bool) -> Any:
        """Return the value typed for a field, its default, or ``_OMITTED``."""
        if description := field.get("description"):
            self._console.text(Text(one_line(str(description)), style="dim"))
        prompt = _field_prompt(name, field, is_needed)
        while True:
            line = (await self._read_line(prompt)).strip()
            if not line and "default" in field:
                return field["default"]
            if not line and not is_needed:
                return _OMITTED
            try:
                return _parse_field(line, field)
            except ValueError:
                self._console.note(
                    f"this is not a valid value; expected: {_type_label(field) or 'JSON'}"
                )

    async def _read_json(self, prompt: str) -> Json:
        while True:
            try:
                return json.loads(await self._read_line(prompt))
            except ValueError as error:
                self._console.note(f"this is not JSON: {error}")

    async def _read_line(self, prompt: str) -> str:
        line = await self._prompter.read_line(prompt)
        if line is None:
            raise _Skipped
        return line


def _matching_action(line: str, actions: Sequence[str]) -> str | None:
    """Return the action with this name, number, or unique start of a name; else None."""
    if line in actions:
        return line
    if line.isdecimal():
        return actions[int(line) - 1] if 0 < int(line) <= len(actions) else None
    matches = [each for each in actions if line and each.casefold().startswith(line.casefold())]
    return matches[0] if len(matches) == 1 else None


def _field_prompt(name: str, field: Mapping[str, Any], is_needed: bool) -> str:
    notes = [_type_label(field)]
    if "default" in field:
        notes.append(f"Enter: {_as_text(field['default'])}")
    elif not is_needed:
        notes.append("Enter: leave out")
    note = ", ".join(filter(None, notes))
    title = one_line(str(field.get("title") or name))
    return f"{title}{f' ({one_line(note)})' if note else ''}: "


def _type_label(field: Mapping[str, Any]) -> str:
    choices = field.get("enum")
    if isinstance(choices, list):
        return "one of " + ", ".join(map(_as_text, cast("list[Any]", choices)))
    kind = field.get("type")
    return "" if kind == "string" else _KINDS.get(str(kind), "JSON")


def _parse_field(line: str, field: Mapping[str, Any]) -> Json:
    """Parse the text typed for a field.

    Raises:
        ValueError: The text does not fit the type of the field.
    """
    choices = field.get("enum")
    if isinstance(choices, list):
        for each in cast("list[Any]", choices):
            if line == _as_text(each):
                return each
        raise ValueError
    kind = field.get("type")
    if kind == "string":
        return line
    if kind == "boolean" and line.casefold() in (*_YES, *_NO):
        return line.casefold() in _YES
    return json.loads(line)


def _parse_new_value(before: Json, text: str) -> Json:
    """Parse a new value: as text if the old value is a text, else as JSON.

    Raises:
        InputError: The new value is not JSON.
    """
    return text if isinstance(before, str) else parse_json(text, "the value")


def _parse_json_or_text(text: str) -> Json:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _as_text(value: Json) -> str:
    return value if isinstance(value, str) else json_text(value)


_CHUNK: Final = 65_536


class Prompter(Protocol):
    """The port through which questions reach the user."""

    @property
    def has_editor(self) -> bool:
        """Whether an editor is configured."""
        ...

    async def read_line(self, prompt: str) -> str | None:
        """Return the line the user types; None at end of input (Ctrl-D)."""
        ...

    async def edit(self, text: str, ending: str) -> str:
        """Return a text as the user edited it; ``ending`` (``.json``) is the file's suffix.

        Raises:
            InputError: There is no editor, or it failed.
        """
        ...

    def discard_typed(self) -> None:
        """Discard input typed before the question was shown."""
        ...


class TerminalPrompter:
    """Reads a terminal through the event loop, so that no other task is blocked."""

    def __init__(self, console: CommandConsole, stdin: int) -> None:
        self._console, self._stdin = console, stdin
        self._buffer = b""

    @property
    def has_editor(self) -> bool:
        """See ``Prompter.has_editor``."""
        return _editor() is not None

    async def read_line(self, prompt: str) -> str | None:
        """See ``Prompter.read_line``."""
        self._console.prompt(prompt)
        while b"\n" not in self._buffer:
            await self._readable()
            chunk = os.read(self._stdin, _CHUNK)
            if not chunk:
                self._console.line()
                return None
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode(errors="replace")

    async def edit(self, text: str, ending: str) -> str:
        """See ``Prompter.edit``."""
        return await edit_text(text, ending)

    def discard_typed(self) -> None:
        """See ``Prompter.discard_typed``."""
        self._buffer = b""
        with suppress(termios.error):
            termios.tcflush(self._stdin, termios.TCIFLUSH)

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        readable: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self._stdin, lambda: readable.done() or readable.set_result(None))
        try:
            await readable
        finally:
            loop.remove_reader(self._stdin)


def terminal_prompter(console: CommandConsole) -> Prompter | None:
    """Return a prompter for the terminal; None without a terminal or with ``--json``."""
    if not console.is_interactive:
        return None
    try:
        return TerminalPrompter(console, sys.stdin.fileno())
    except (OSError, ValueError):  # it has no number
        return None


async def edit_text(text: str, ending: str) -> str:
    """Return a text as the user edited it with ``$VISUAL`` or ``$EDITOR``; see ``Prompter.edit``.

    Raises:
        InputError: There is no editor, or it failed.
    """
    command = _editor()
    if command is None:
        raise InputError("no editor is set", hint="set the variable EDITOR")
    with TemporaryDirectory(prefix="planwave-") as directory:
        file = Path(directory, f"value{ending}")
        try:
            await asyncio.to_thread(file.write_text, text, "utf-8")
            code = await _run_program([*command, str(file)])
            new_text = await asyncio.to_thread(file.read_text, "utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{command[0]} could not edit the text: {reason_of(error)}") from error
    if code:
        raise InputError(f"{command[0]} ended with exit code {code}; nothing was changed")
    return new_text


async def _run_program(command: list[str]) -> int:
    """Run a program on this terminal and return its exit code; terminate it on cancellation."""
    process = await asyncio.create_subprocess_exec(*command)
    try:
        return await process.wait()
    finally:
        if process.returncode is None:
            process.terminate()


def _editor() -> list[str] | None:
    with suppress(ValueError):
        return shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "") or None
    return None


async def is_confirmed(console: CommandConsole, question: str) -> bool:
    """Return whether a person on the terminal says yes; without one nobody does."""
    prompter = terminal_prompter(console)
    line = None if prompter is None else await prompter.read_line(question)
    return line is not None and line.strip().lower() in ("y", "yes")
