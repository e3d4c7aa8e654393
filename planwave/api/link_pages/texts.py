"""Texts and values of runs as HTML: Markdown without HTML of its own, JSON as code."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Final

from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from markdown_it.renderer import RendererHTML
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token
    from markdown_it.utils import EnvType, OptionsDict

    from planwave.graph.model import Json

LONGEST: Final = 512_000
"""Characters that are shown on one page."""
LONGEST_MARKDOWN: Final = 32_000
"""Longer texts are shown as they are: the time for Markdown grows with the square of its length."""
_MARKDOWN_OF_PAGE: Final = 2 * LONGEST_MARKDOWN
"""Characters of Markdown on one page; what comes after them is shown as it is."""
_TITLE_LEVEL: Final = 1
"""Of the page; the headings of texts are below it."""
_DEEPEST: Final = 6
_MATH: Final = re.compile(
    r"\\\(.{1,500}?\\\)|\\\[.{1,500}?\\\]|\$\$.{1,500}?\$\$|\$(?![\s\d])[^$\n]{1,500}(?<!\s)\$(?!\d)",
    re.DOTALL,
)
"""Mathematics, as the web UI finds it; here it is shown as it was written. Its length is bounded, so that many marks
that none closes take no long time."""
_SCHEME: Final = re.compile(r"\s*([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_SCHEMES: Final = frozenset({"http", "https", "mailto"})
_IMAGE: Final = re.compile(r"data:image/(gif|png|jpeg|webp);", re.IGNORECASE)
_BLOCKS: Final = frozenset(
    {"paragraph_open", "heading_open", "blockquote_open", "list_item_open", "td_open", "th_open"}
)


class PageTexts:
    """The texts and values of one page, whose length together is bounded."""

    def __init__(self) -> None:
        self._left = LONGEST
        self._markdown_left = _MARKDOWN_OF_PAGE

    def html(self, value: Json, longest: int = LONGEST) -> str:
        """Return a value as HTML: a text as Markdown, anything else as JSON; cut after ``longest`` characters."""
        text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
        most = min(longest, self._left)
        shown, is_code = text[:most], not isinstance(value, str) or _is_json(text)
        self._left -= len(shown)
        if is_code or len(shown) > min(LONGEST_MARKDOWN, self._markdown_left):
            html = f'<pre tabindex="0" dir="{"ltr" if is_code else "auto"}">{escape(shown)}</pre>'
        else:
            self._markdown_left -= len(shown)
            html = _MARKDOWN.render(shown)
        cut = f'<p class="note">The first {most:,} of {len(text):,} characters are shown.</p>'
        return html + cut if len(text) > most else html


def _is_json(text: str) -> bool:
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _adapt(state: StateCore) -> None:
    """Put headings below that of the page, and let each block have the direction of its own words."""
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + _TITLE_LEVEL, _DEEPEST)}"
        if alignment := token.attrs.pop(
            "style", None
        ):  # the policy of the page allows no style attribute
            token.attrSet("class", str(alignment).rpartition(":")[2])
        if token.type in _BLOCKS:
            token.attrSet("dir", "auto")


def _may_link(url: str) -> bool:
    """Return whether a text may link to a URL: no program of the reader's machine is opened by one."""
    scheme = _SCHEME.match(url)
    return scheme is None or scheme[1].lower() in _SCHEMES or _IMAGE.match(url) is not None


def _keep_math(state: StateInline, silent: bool) -> bool:
    """Keep mathematics as it is: its marks are none of Markdown."""
    found = _MATH.match(state.src, state.pos)
    if found is None:
        return False
    if not silent:
        state.push("code_inline", "code", 0).content = found[0]
    state.pos = found.end()
    return True


def _image(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    """Return a picture that the text contains; one that is elsewhere is a link, because nothing is loaded."""
    token = tokens[index]
    source = str(token.attrGet("src") or "")
    words = renderer.renderInlineAsText(token.children or [], options, env)
    if source.startswith("data:"):
        return f'<img src="{escape(source)}" alt="{escape(words)}">'
    return f'<a href="{escape(source)}" rel="{_REL}">{escape(words or source)}</a>'


def _link(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    tokens[index].attrSet("rel", _REL)
    return renderer.renderToken(tokens, index, options, env)


def _scrolled(tag: str) -> Any:
    def wrap(
        renderer: RendererHTML,
        tokens: Sequence[Token],
        index: int,
        options: OptionsDict,
        env: EnvType,
    ) -> str:
        drawn = renderer.renderToken(tokens, index, options, env)
        is_end = tokens[index].nesting < 0
        return f"{drawn}</div>" if is_end else f'<div class="wide" tabindex="0">{drawn}'

    return tag, wrap


def _code(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    return f'<pre tabindex="0" dir="ltr"><code>{escape(tokens[index].content)}</code></pre>\n'


_REL: Final = "noreferrer noopener nofollow"


def _reader() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    reader.validateLink = _may_link
    reader.core.ruler.push("planwave", _adapt)
    reader.inline.ruler.before("escape", "math", _keep_math)
    for name, rule in (
        ("image", _image),
        ("link_open", _link),
        ("fence", _code),
        ("code_block", _code),
        _scrolled("table_open"),
        _scrolled("table_close"),
    ):
        reader.add_render_rule(name, rule)
    return reader


_MARKDOWN: Final = _reader()
