"""Join the fragments of tool calls, whatever a server repeats, leaves out or mixes up.

The protocols say that the fragments of one call share an index. Servers send several calls under one
index (Ollama), repeat id and name in each fragment, or send neither index nor id.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from planwave.providers.streams.events import object_in


@dataclass(slots=True)
class _Call:
    number: int
    index: object
    id: str
    name: str
    arguments: str

    @property
    def is_whole(self) -> bool:
        """Whether its arguments are complete JSON."""
        if not self.arguments.rstrip().endswith(("}", "null")):
            return False
        try:
            json.loads(self.arguments)
        except ValueError:
            return False
        return True


class CallFragment(NamedTuple):
    """A fragment, with the number of its call; only a fragment that begins a call has id and name.

    Attributes:
        number: The number of the call, from 0.
        begins: Whether it begins the call.
        id: The id that is new with this fragment, or "".
        name: The name, or its part, that is new with this fragment, or "".
        arguments: What it adds to the arguments.
    """

    number: int
    begins: bool
    id: str
    name: str
    arguments: str


class ToolCallJoiner:
    """Assigns the fragments of one reply to calls, by index and id.

    A fragment with another id begins a call, and so does a name after complete arguments. A fragment
    with the id of a call goes on with it; the id and the name again change nothing.

    Args:
        names: The tools that are offered. A name that comes in pieces is told from another call by them.
    """

    def __init__(self, names: Collection[str] = ()) -> None:
        self._names = names
        self._calls: list[_Call] = []

    def add(
        self, index: object = None, id: object = None, name: object = None, arguments: object = None
    ) -> CallFragment | None:
        """Return the fragment with its call; None if it adds nothing."""
        id, name, text = _text(id), _text(name), arguments_text(arguments)
        call = self._call_of(index, id, name, text)
        if call is None:
            call = _Call(len(self._calls), index, id, name, text)
            self._calls.append(call)
            return CallFragment(call.number, True, id, name, text)
        if id and text and text == call.arguments and call.is_whole:
            return None  # the whole call once more
        new_id = "" if call.id else id
        new_name = name if name not in (call.name, "") else ""
        if new_name and call.name and new_name.startswith(call.name):
            new_name = new_name[len(call.name) :]  # the name so far
        call.id += new_id
        call.name += new_name
        call.arguments += text
        return CallFragment(call.number, False, new_id, new_name, text)

    def _call_of(self, index: object, id: str, name: str, text: str) -> _Call | None:
        """Return the call that a fragment goes on with; None if it begins one."""
        same = next((call for call in reversed(self._calls) if id and call.id == id), None)
        if same is not None:
            renamed = name in self._names and name != same.name and same.is_whole
            return None if renamed or _is_another(same, text) else same
        last = next((call for call in reversed(self._calls) if call.index == index), None)
        if last is None and self._calls and (index is None or not (id or name)):
            last = self._calls[-1]
        if last is None or (id and last.id) or (name and self._begins_call(last, name)):
            return None
        if not name and text.lstrip().startswith("{") and _is_another(last, text):
            return None
        return last

    def _begins_call(self, last: _Call, name: str) -> bool:
        if not last.name:
            return False
        if last.arguments and last.is_whole:
            return True
        is_piece = name == last.name or last.name + name in self._names
        return name in self._names and not is_piece


def _is_another(call: _Call, text: str) -> bool:
    """Return whether arguments cannot go on with those of a call, which are complete."""
    return bool(text.strip()) and text != call.arguments and call.is_whole


def _text(value: object) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def arguments_text(value: object) -> str:
    """Return arguments as JSON text; some servers send an object."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def offered_names(body: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the tools that a request offers."""
    tools = body.get("tools")
    names: set[str] = set()
    for tool in cast("list[Any]", tools) if isinstance(tools, list) else ():
        fields = object_in(tool)
        named = object_in(fields.get("function")) or fields
        if isinstance(name := named.get("name"), str):
            names.add(name)
    return frozenset(names)
