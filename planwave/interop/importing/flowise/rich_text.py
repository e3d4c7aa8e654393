"""Texts of Flowise's editor, which are HTML, as the Markdown that its engine sends."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Final

_STARTS_AS_HTML: Final = re.compile(r"\s*<(?:p|div|h[1-6]|ul|ol|blockquote|pre|table)\b", re.I)
"""Texts that begin otherwise are sent as they are."""
_BLOCKS: Final = frozenset(
    {"p", "div", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "table", "tr"}
)  # fmt: skip
_MARKS: Final = {"strong": "**", "b": "**", "em": "_", "i": "_"} | dict.fromkeys(("code",), "`")
_SPACES: Final = re.compile(r"[ \t\r\n]+")
_QUOTE: Final = "> "


def plain_text(text: str) -> str:
    """Return the text of HTML as Markdown, with ``{{ … }}`` as they are; other texts unchanged."""
    if not _STARTS_AS_HTML.match(text):
        return text
    reader = _Reader()
    reader.feed(text)
    reader.close()
    reader.end_block()
    return "".join(reader.made)


class _Reader(HTMLParser):
    """Collects blocks of text; an empty line stands between two, and a line break between items of a list."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.made: list[str] = []
        self._line: list[str] = []
        self._lists: list[int | None] = []
        self._prefix = ""
        self._quotes = 0
        self._is_code = False
        self._was_item = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "br":
            self._line.append("\n")
        elif tag in _MARKS and not self._is_code:
            self._line.append(_MARKS[tag])
        elif tag in _BLOCKS:
            if not (tag == "p" and self._prefix):
                self.end_block()
            self._open_block(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in _MARKS and not self._is_code:
            self._line.append(_MARKS[tag])
        elif tag in _BLOCKS:
            self.end_block()
            self._close_block(tag)

    def handle_data(self, data: str) -> None:
        self._line.append(data if self._is_code else _SPACES.sub(" ", data))

    def _open_block(self, tag: str) -> None:
        match tag:
            case "ul" | "ol":
                self._lists.append(0 if tag == "ol" else None)
            case "li":
                number = self._lists[-1] if self._lists else None
                if number is not None:
                    self._lists[-1] = number + 1
                mark = "- " if number is None else f"{number + 1}. "
                self._prefix = "  " * (len(self._lists) - 1) + mark
            case "blockquote":
                self._quotes += 1
            case "pre":
                self._is_code = True
            case _ if tag[0] == "h" and tag[1:].isdigit():
                self._prefix = "#" * int(tag[1:]) + " "
            case _:
                pass

    def _close_block(self, tag: str) -> None:
        match tag:
            case "ul" | "ol" if self._lists:
                self._lists.pop()
            case "blockquote":
                self._quotes = max(self._quotes - 1, 0)
            case "pre":
                self._is_code = False
            case _:
                pass
        self._prefix = ""

    def end_block(self) -> None:
        """Keep what was collected since the last block, unless it is empty."""
        line = "".join(self._line)
        self._line = []
        if not line.strip():
            return
        if self._is_code:
            line = f"```\n{line.strip(chr(10))}\n```"
        else:
            line = "\n".join(part.strip() for part in line.strip().split("\n"))
        is_item = bool(self._prefix) and not self._prefix.startswith("#")
        if self.made:
            self.made.append("\n" if is_item and self._was_item else "\n\n")
        self._was_item = is_item
        self.made.append(_QUOTE * self._quotes + self._prefix + line)
        self._prefix = ""
