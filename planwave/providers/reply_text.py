"""Read the text of a reply: tell reasoning from what is said, and find its JSON document.

Many servers leave reasoning in the text: in tags, of which the first may be missing since it stands in
the prompt, or in the channels of gpt-oss. Reasoning stands at the beginning of a reply, or is a section at
its end; a text about tags, in code or between other words, stays as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterator
from typing import Any, Final, NamedTuple, cast

from planwave.providers.protocols import Delta

_NAMES: Final = r"(?:seed:|ant)?(?:think|thinking|thought|thoughts|reasoning)"
_OPENING: Final = re.compile(
    rf"<(?P<tag>{_NAMES})(?:\s[^<>]{{0,200}})?>|\[(?P<bracket>THINK)\]|"
    r"\u25c1(?P<kimi>think)\u25b7|<\|(?P<bar>begin_of_thought|thinking)\|>",
    re.IGNORECASE,
)
_CLOSING: Final = re.compile(
    rf"</{_NAMES}\s*>|\[/THINK\]|\u25c1/think\u25b7|<\|(?:end_of_thought|/thinking)\|>",
    re.IGNORECASE,
)
_CHANNEL: Final = re.compile(
    r"(?:<\|start\|>\s*assistant\s*)?<\|channel\|>\s*(?P<name>\w+)(?P<rest>[^<]{0,200})"
    r"(?:<\|constrain\|>[^<]{0,40})?<\|message\|>"
)
_CHANNEL_END: Final = re.compile(r"<\|(?:end|return|call|start|channel)\|>")
_MARK: Final = re.compile(r"[<\[\u25c1`~]")
_MAX_MARK_CHARS: Final = 300
"""The most characters of an opening tag with its attributes, or of the head of a channel."""
_SENTENCE_ENDS: Final = ".!?:;)]}\"'\u201d>"
_TOOL_CALL: Final = re.compile(r"\s*<tool_call>\s*(.*?)\s*(?:</tool_call>|$)\s*", re.DOTALL)
_CALL_SECTION: Final = re.compile(
    r"<tool_call>\s*(\{.*?\})\s*(?:</tool_call>|(?=<tool_call>)|\Z)", re.DOTALL
)
_FENCES: Final = ("```", "~~~")


class ReplyReader:
    """Tells reasoning from text in a reply that arrives in pieces.

    Args:
        begins_inside: Whether replies of the model begin with reasoning, without an opening tag.

    Attributes:
        has_lone_end: Whether a closing tag ended reasoning that no tag had opened.
    """

    def __init__(self, *, begins_inside: bool = False) -> None:
        self.has_lone_end = False
        self._state = "inside" if begins_inside else "start"
        self._begins_inside = begins_inside
        self._rest = ""
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._ends_with_section = False

    @property
    def text(self) -> str:
        """What is said."""
        text = "".join(self._text)
        return text.rstrip() if self._ends_with_section else text

    @property
    def is_open(self) -> bool:
        """Whether the reply has ended inside a section of reasoning."""
        return self._state == "inside"

    @property
    def reasoning(self) -> str:
        """The reasoning that was in the text."""
        return "".join(self._reasoning).strip()

    def feed(self, piece: str) -> Iterator[Delta]:
        """Yield what these characters add."""
        self._rest += piece
        yield from self._read(is_end=False)

    def end(self) -> Iterator[Delta]:
        """Yield what was held back."""
        yield from self._read(is_end=True)
        if self._begins_inside and not self.text.strip():
            text, self._reasoning = "".join(self._reasoning), []
            yield from self._say(text)

    def _read(self, *, is_end: bool) -> Iterator[Delta]:
        while True:
            before = (self._state, len(self._rest))
            yield from getattr(self, f"_read_{self._state}")(is_end)
            if (self._state, len(self._rest)) == before or not self._rest:
                return

    def _read_start(self, is_end: bool) -> Iterator[Delta]:
        """Look for the beginning of reasoning, after white space."""
        start = self._rest.lstrip("\ufeff \t\r\n")
        if not start:
            return
        if match := _OPENING.match(start):
            self._rest, self._state = start[match.end() :], "inside"
        elif match := _CHANNEL.match(start):
            self._enter_channel(start, match)
        elif match := _CLOSING.match(start):
            self._rest = start[match.end() :]
        elif is_end or not _may_begin(start):
            self._state = "text"
        yield from ()

    def _enter_channel(self, start: str, match: re.Match[str]) -> None:
        self._rest = start[match.end() :]
        self._state = "analysis" if match["name"].lower() == "analysis" else "final"

    def _read_inside(self, is_end: bool) -> Iterator[Delta]:
        match = _CLOSING.search(self._rest)
        if match is not None:
            yield from self._think(self._rest[: match.start()])
            self._rest, self._state = self._rest[match.end() :], "start"
            self._begins_inside = False
            return
        yield from self._think(self._take(is_end))

    def _read_analysis(self, is_end: bool) -> Iterator[Delta]:
        yield from self._read_channel(self._think, is_end)

    def _read_final(self, is_end: bool) -> Iterator[Delta]:
        yield from self._read_channel(self._say, is_end)

    def _read_channel(self, add: Any, is_end: bool) -> Iterator[Delta]:
        match = _CHANNEL_END.search(self._rest)
        if match is None:
            yield from add(self._take(is_end))
            return
        yield from add(self._rest[: match.start()])
        begins = match[0] in ("<|start|>", "<|channel|>")
        self._rest, self._state = self._rest[match.start() if begins else match.end() :], "start"

    def _read_text(self, is_end: bool) -> Iterator[Delta]:
        """Pass text on, and look for a lone closing tag, or a section of reasoning at the end."""
        for mark in _MARK.finditer(self._rest):
            at = mark.start()
            if not is_end and _may_begin(self._rest[at:]):
                yield from self._say(self._cut(at))
                return
            closing = _CLOSING.match(self._rest, at)
            if closing is not None:
                if closing.end() == len(self._rest) and not is_end:
                    yield from self._say(self._cut(at))  # what follows decides
                    return
                if self._is_lone(self.text + self._rest[:at], closing.end()):
                    yield from self._drop_text(at, closing.end())
                    return
            opening = _OPENING.match(self._rest, at)
            if opening is not None and _begins_line(self.text + self._rest[:at]):
                section = _CLOSING.search(self._rest, opening.end())
                is_last = section is None or not self._rest[section.end() :].strip()
                if is_last and not is_end:
                    yield from self._say(self._cut(at))
                    return
                if is_last and section is not None:
                    thought = self._rest[opening.end() : section.start()]
                    yield from self._say(self._rest[:at])
                    yield from self._think(thought)
                    self._rest, self._ends_with_section = "", True
                    return
        yield from self._say(self._cut(len(self._rest)))

    def _is_lone(self, before: str, end: int) -> bool:
        """Return whether a closing tag ends reasoning, and is not part of what is said."""
        if self._reasoning or _OPENING.search(before) or _is_in_code(before):
            return False
        if before.lstrip().startswith(("{", "[")) and _is_in_string(before.rpartition("\n")[2]):
            return False
        after = self._rest[end:]
        line = before.rpartition("\n")[2]
        if before[-1:] in ("'", '"', "\u201c", "\u2018", "(") or after[:1] in ("'", '"', "\u201d"):
            return False
        is_spaced = line[-1:].isspace() and after[:1] in (" ", "\t", ",", ".", ";")
        return not (is_spaced and line.strip() and line.rstrip()[-1:] not in _SENTENCE_ENDS)

    def _drop_text(self, at: int, end: int) -> Iterator[Delta]:
        """Take the text so far for reasoning."""
        thought = self.text + self._rest[:at]
        if self._text:
            yield Delta("", "discarded")
        self._text.clear()
        self.has_lone_end = True
        yield from self._think(thought)
        self._rest, self._state = self._rest[end:], "start"

    def _take(self, is_end: bool) -> str:
        """Take off what is no beginning of a mark."""
        if is_end:
            return self._cut(len(self._rest))
        for mark in _MARK.finditer(self._rest):
            if _may_begin(self._rest[mark.start() :]):
                return self._cut(mark.start())
        return self._cut(len(self._rest))

    def _cut(self, at: int) -> str:
        head, self._rest = self._rest[:at], self._rest[at:]
        return head

    def _say(self, text: str) -> Iterator[Delta]:
        if not self._text:
            text = text.lstrip() if self._reasoning else text
        if text:
            self._text.append(text)
            yield Delta(text)

    def _think(self, text: str) -> Iterator[Delta]:
        if text:
            self._reasoning.append(text)
            yield Delta(text, "reasoning")


def _may_begin(text: str) -> bool:
    """Return whether a text may be the beginning of a mark that has not come whole."""
    if len(text) > _MAX_MARK_CHARS or (text[:1] == "<" and ">" in text and "|" not in text):
        return False
    if text[:1] in ("`", "~"):
        return False
    if text.startswith("<|"):
        return not re.search(r"<\|message\|>|<\|(end|return|call|end_of_thought)\|>", text) and (
            bool(re.fullmatch(r"<\|[\w/]{0,20}\|?", text))
            or text.startswith(("<|start|>", "<|channel|>"))
        )
    if text[:1] in ("[", "\u25c1"):
        wholes = ("[think]", "[/think]", "\u25c1think\u25b7", "\u25c1/think\u25b7")
        return any(len(text) < len(whole) and whole.startswith(text.lower()) for whole in wholes)
    if text[:1] != "<":
        return False
    tag = re.match(r"</?([a-z:]*)", text.lower())
    name = tag[1] if tag else ""
    if re.fullmatch(_NAMES, name):
        return ">" not in text
    is_partial = tag is not None and tag.end() == len(text)
    return is_partial and any(whole.startswith(name) for whole in _ALL_NAMES)


_ALL_NAMES: Final = tuple(
    prefix + name
    for prefix in ("", "seed:", "ant")
    for name in ("thinking", "thoughts", "reasoning")
)


def _begins_line(before: str) -> bool:
    return not before.rpartition("\n")[2].strip() and not _is_in_code(before)


def _is_in_code(before: str) -> bool:
    """Return whether a text ends inside a fence, or inside code in a line."""
    fence = ""
    for line in before.split("\n")[:-1]:
        mark = line.lstrip()[:3]
        if fence:
            fence = "" if mark == fence else fence
        elif mark in _FENCES:
            fence = mark
    last = before.rpartition("\n")[2]
    return bool(fence) or last.count("`") % 2 == 1


def _is_in_string(line: str) -> bool:
    return len(re.findall(r'(?<!\\)(?:\\\\)*"', line)) % 2 == 1


class SplitReply(NamedTuple):
    """The text of a reply, and the reasoning that was in it."""

    text: str
    reasoning: str


def split_reasoning(reply: str) -> SplitReply:
    """Return the text of a whole reply without its reasoning; unchanged where there is none, or no end of it."""
    reader = ReplyReader()
    for _ in (*reader.feed(reply), *reader.end()):
        pass
    has_reasoning = reader.reasoning and not reader.is_open
    return SplitReply(reader.text, reader.reasoning) if has_reasoning else SplitReply(reply, "")


class FencedText(NamedTuple):
    """The fenced blocks of a text, the prose outside, and whether a fence is still open."""

    blocks: list[str]
    outside: str
    is_open: bool


def fenced_blocks(text: str) -> FencedText:
    """Return the blocks between fences of backticks or tildes.

    Fences are looked for at line starts and line ends: no JSON string goes over a line's end, so a
    fence can never be part of a document.
    """
    blocks: list[str] = []
    outside: list[str] = []
    block: list[str] = []
    fence = ""
    for line in text.split("\n"):
        if not fence:
            mark = line.lstrip()[:3]
            fence = mark if mark in _FENCES else ""
            if not fence:
                outside.append(line)
        elif line.rstrip().endswith(fence):
            blocks.append("\n".join([*block, line.rstrip().rstrip(fence[0])]))
            block, fence = [], ""
        else:
            block.append(line)
    return FencedText(blocks, "\n".join(outside).strip(), bool(fence))


def json_text(reply: str) -> str:
    """Return the JSON document of a reply: without reasoning, its fence, prose around that, or a call's tags.

    A reply whose document is not certain is returned as it is.
    """
    text = split_reasoning(reply).text.strip().lstrip("\ufeff").strip()
    if text.startswith(("{", "[")):
        return text
    if (call := _TOOL_CALL.fullmatch(text)) is not None:
        called = _called(call[1])
        return call[1] if called is None else called[1]
    fenced = fenced_blocks(text)
    return fenced.blocks[0].strip() if len(fenced.blocks) == 1 and not fenced.is_open else text


def calls_in_text(text: str, names: Container[str]) -> tuple[str, list[tuple[str, str]]]:
    """Return a text without the calls of tools that a server left in it, and these: name and arguments.

    Only sections that begin a line, outside of code, and only if all of them call known tools.
    """
    sections = [
        match for match in _CALL_SECTION.finditer(text) if _begins_line(text[: match.start()])
    ]
    calls = [_called(match[1]) for match in sections]
    own_calls = [call for call in calls if call is not None and call[0] in names]
    if not own_calls or len(own_calls) < len(calls):
        return text, []
    for match in reversed(sections):
        text = text[: match.start()] + text[match.end() :]
    return text.strip(), own_calls


def _called(text: str) -> tuple[str, str] | None:
    """Return name and arguments of a call in JSON; None if it is none."""
    try:
        value: Any = json.loads(text)
    except ValueError:
        return None
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    name, arguments = fields.get("name"), fields.get("arguments", fields.get("parameters"))
    if not isinstance(name, str) or not isinstance(arguments, str | dict):
        return None
    return name, arguments if isinstance(arguments, str) else json.dumps(
        arguments, ensure_ascii=False
    )
