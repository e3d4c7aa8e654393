"""A model's answer on a terminal: its Markdown rendered, and nothing of it left out."""

from __future__ import annotations

from markdown_it import MarkdownIt
from rich.console import RenderableType
from rich.markdown import Markdown
from rich.text import Text

_RENDERED_CHARS = 100_000
"""Rendering takes about a second for so many; longer texts are shown as they are."""


def render_markdown(text: str) -> RenderableType:
    """Give an answer as a terminal shows it.

    Models write for people: a line break is meant (a poem, an address), and a tag is something they
    write about. CommonMark joins such lines, and Rich leaves tags out.
    """
    if len(text) > _RENDERED_CHARS:
        return Text(text)
    answer = Markdown("", hyperlinks=False)
    parser = MarkdownIt("commonmark", {"html": False}).enable("strikethrough").enable("table")
    answer.parsed = parser.parse(text)
    for token in answer.parsed:
        for part in token.children or ():
            if part.type == "softbreak":
                part.type = "hardbreak"
    return answer
