"""A request put to a person: what is asked, which ways there are, and the answer made of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from rich.text import Text

from planwave.cli.wording import duration, json_text, one_line, json_object
from planwave.errors import GraphInvalid, InputError
from planwave.events import OpenRequest
from planwave.events.course import request_text
from planwave.graph.model import Json

if TYPE_CHECKING:
    from planwave.cli.screen import CommandConsole
    from planwave.cli.terminal import Prompter

_EDIT: Final = "e"
_YES: Final = ("y", "yes", "true")
_NO: Final = ("n", "no", "false")
_KINDS: Final = {"integer": "whole number", "number": "number", "boolean": "y or n"}
_VALUE_CHARS: Final = 4_000
"""More of a value only hides the question; an editor shows all of it."""


class PromptResult(NamedTuple):
    """An answer, which may be null."""

    answer: Json


class _Skipped(Exception):
    """The person leaves the question open."""


_OMITTED: Final = object()


async def ask(screen: CommandConsole, prompter: Prompter, request: OpenRequest, name: str) -> PromptResult | None:
    """Ask a person until there is an answer the request takes; None where they leave it open.

    Args:
        screen: Where the question is shown.
        person: Who is asked.
        request: What is asked.
        name: Of the step that asks.
    """
    from planwave.service.requests import InvalidAnswer, validate_answer

    _show_request(screen, request, name)
    prompter.discard_typed()
    questions = _Questions(screen, prompter, request.request)
    while True:
        try:
            return PromptResult(validate_answer(request.request, await questions.answer()))
        except InvalidAnswer as error:
            for found in error.diagnostics:
                screen.note(found.message + (f" ({found.hint})" if found.hint else ""))
        except _Skipped:
            return None


def _show_request(screen: CommandConsole, request: OpenRequest, name: str) -> None:
    screen.line()
    head = f"{screen.glyph('waiting')} {one_line(name)} asks ({request.request_id})"
    screen.text(Text(head, style="bold yellow"))
    screen.markdown(request_text(request.request))
    value = json_object(request.request).get("value")
    if value not in (None, ""):
        screen.line(Text("Value", style="dim"))
        text = _as_text(value)
        screen.text(text[:_VALUE_CHARS] + ("…" if len(text) > _VALUE_CHARS else ""))
    if request.timeout_s is not None:
        action = json_object(request.request).get("timeoutAction")
        way = "" if action is None else f", with {action}"
        limit = f"Without an answer it goes on by itself after {duration(request.timeout_s)}{way}."
        screen.text(Text(one_line(limit), style="dim"))


class _Questions:
    """What a person is asked to answer one request.

    Raises:
        _Later: From each question, where the person leaves it open.
    """

    def __init__(self, screen: CommandConsole, person: Prompter, request: Json) -> None:
        self._screen, self._prompter = screen, person
        fields = json_object(request)
        self._actions: list[str] = [str(each) for each in fields.get("actions") or ()]
        form = fields.get("form")
        self._form = cast("dict[str, Any]", form) if isinstance(form, dict) else None
        self._value: Json = fields.get("value")
        self._is_editable = fields.get("editable") is True
        self._is_interrupted = fields.get("kind") == "interrupted"

    async def answer(self) -> Json:
        """Give what was answered, unchecked."""
        if not self._actions and self._form is None:
            return _parse_json_or_text(await self._read_line("Answer (JSON, or text): "))
        answer: dict[str, Json] = await self._decision() if self._actions else {}
        if self._is_interrupted and answer.get("decision") == "give_result":
            answer["value"] = _parse_json_or_text(await self._read_line("Result (JSON, or text): "))
        if self._form is not None:
            answer["form"] = await self._fill_form(self._form)
        if note := (await self._read_line("Note (Enter: none): ")).strip():
            answer["note"] = note
        return answer

    async def _decision(self) -> dict[str, Json]:
        edited: dict[str, Json] = {}
        can_edit = self._is_editable and _EDIT not in self._actions
        for number, action in enumerate(self._actions, start=1):
            self._screen.line(f"  {number}  {action}")
        if can_edit:
            self._screen.line(f"  {_EDIT}  edit the value first")
        while True:
            said = (await self._read_line("Decision: ")).strip()
            if can_edit and said == _EDIT:
                edited = {"value": await self._edit_value(edited.get("value", self._value))}
            elif (chosen := _matching_action(said, self._actions)) is not None:
                return {"decision": chosen, **edited}
            elif said:
                self._screen.note(f"decisions are {', '.join(self._actions)}")

    async def _edit_value(self, value: Json) -> Json:
        """Give what the person makes of a value: text stays text, anything else is JSON."""
        kind, ending = ("text", ".txt") if isinstance(value, str) else ("JSON", ".json")
        try:
            if not self._prompter.has_editor:
                return _parse_new_value(value, await self._read_line(f"New value ({kind}): "))
            made = await self._prompter.edit(_as_text(value), ending)
            return _parse_new_value(value, made.removesuffix("\n"))
        except InputError as error:
            self._screen.note(error.message)
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
            given = await self._field(name, json_object(field), name in needed)
            if given is not _OMITTED:
                form[name] = given
        return form

    async def _field(self, name: str, field: Mapping[str, Any], is_needed: bool) -> Any:
        """Give what is typed for a field, its default, or ``_OMITTED``."""
        if description := field.get("description"):
            self._screen.text(Text(one_line(str(description)), style="dim"))
        prompt = _field_prompt(name, field, is_needed)
        while True:
            said = (await self._read_line(prompt)).strip()
            if not said and "default" in field:
                return field["default"]
            if not said and not is_needed:
                return _OMITTED
            try:
                return _parse_field(said, field)
            except ValueError:
                self._screen.note(f"that is no {_type_label(field) or 'JSON'}")

    async def _read_json(self, prompt: str) -> Json:
        while True:
            try:
                return json.loads(await self._read_line(prompt))
            except ValueError as error:
                self._screen.note(f"that is no JSON: {error}")

    async def _read_line(self, prompt: str) -> str:
        said = await self._prompter.read_line(prompt)
        if said is None:
            raise _Skipped
        return said


def parse_json(text: str | bytes, what: str) -> Json:
    """Read JSON strictly.

    Raises:
        InputError: It is none; the message names ``what`` it was written for.
    """
    from planwave.graph.read import parse_strict_json

    try:
        return parse_strict_json(text)
    except GraphInvalid as error:
        hint = "a text is written in quotes: '\"like this\"'"
        raise InputError(f"{what}: {error.message}", code="usage", hint=hint) from error


def _matching_action(said: str, actions: Sequence[str]) -> str | None:
    """Give the action that was meant: by its name, its number, or the unique start of its name."""
    if said in actions:
        return said
    if said.isdecimal():
        return actions[int(said) - 1] if 0 < int(said) <= len(actions) else None
    found = [each for each in actions if said and each.casefold().startswith(said.casefold())]
    return found[0] if len(found) == 1 else None


def _field_prompt(name: str, field: Mapping[str, Any], is_needed: bool) -> str:
    notes = [_type_label(field)]
    if "default" in field:
        notes.append(f"Enter: {_as_text(field['default'])}")
    elif not is_needed:
        notes.append("Enter: leave out")
    said = ", ".join(filter(None, notes))
    title = one_line(str(field.get("title") or name))
    return f"{title}{f' ({one_line(said)})' if said else ''}: "


def _type_label(field: Mapping[str, Any]) -> str:
    choices = field.get("enum")
    if isinstance(choices, list):
        return "one of " + ", ".join(map(_as_text, cast("list[Any]", choices)))
    kind = field.get("type")
    return "" if kind == "string" else _KINDS.get(str(kind), "JSON")


def _parse_field(said: str, field: Mapping[str, Any]) -> Json:
    """Read what was typed for a field.

    Raises:
        ValueError: It is not of the field's kind.
    """
    choices = field.get("enum")
    if isinstance(choices, list):
        for each in cast("list[Any]", choices):
            if said == _as_text(each):
                return each
        raise ValueError
    kind = field.get("type")
    if kind == "string":
        return said
    if kind == "boolean" and said.casefold() in (*_YES, *_NO):
        return said.casefold() in _YES
    return json.loads(said)


def _parse_new_value(before: Json, said: str) -> Json:
    """Read a new value: of a text, text; of anything else, JSON.

    Raises:
        InputError: It is no JSON.
    """
    return said if isinstance(before, str) else parse_json(said, "the value")


def _parse_json_or_text(said: str) -> Json:
    try:
        return json.loads(said)
    except ValueError:
        return said


def _as_text(value: Json) -> str:
    return value if isinstance(value, str) else json_text(value)
