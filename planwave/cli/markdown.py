"""Rendering of a model's Markdown on a terminal, without losing any text."""

from __future__ import annotations

from markdown_it import MarkdownIt
from rich.console import RenderableType
from rich.markdown import Markdown
from rich.text import Text

_RENDERED_CHARS = 100_000
"""Rendering this many characters takes about a second; longer texts are shown unrendered."""


def render_markdown(text: str) -> RenderableType:
    """Return the rendered form of a model's answer.

    Single line breaks (a poem, an address) and HTML tags are kept: CommonMark would join such
    lines, and Rich would drop the tags.
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
