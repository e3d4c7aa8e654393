"""Texts of runs as HTML: nothing of them becomes HTML of its own, and nothing is loaded."""

from __future__ import annotations

import re
import time

import pytest

from planwave.api.link_pages.texts import LONGEST, LONGEST_MARKDOWN, PageTexts


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("# T\n\n###### D", '<h2 dir="auto">T</h2>\n<h6 dir="auto">D</h6>\n'),
        ("a <b>b</b> & c", '<p dir="auto">a &lt;b&gt;b&lt;/b&gt; &amp; c</p>\n'),
        ("`<i>`", '<p dir="auto"><code>&lt;i&gt;</code></p>\n'),
        ("```html\n<i>\n```", '<pre tabindex="0" dir="ltr"><code>&lt;i&gt;\n</code></pre>\n'),
        (
            '{"a": "<b>"}',
            '<pre tabindex="0" dir="ltr">{&quot;a&quot;: &quot;&lt;b&gt;&quot;}</pre>',
        ),
        (
            r"From $5 to $10: $\frac{a}{b}\,x_1$ and \[ a_1 < b_2 \]",
            r'<p dir="auto">From $5 to $10: <code>$\frac{a}{b}\,x_1$</code> and '
            "<code>\\[ a_1 &lt; b_2 \\]</code></p>\n",
        ),
        (7, '<pre tabindex="0" dir="ltr">7</pre>'),
        (None, '<pre tabindex="0" dir="ltr">null</pre>'),
    ],
)
def test_text_as_html(text: object, html: str) -> None:
    assert PageTexts().html(text) == html


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "[x](vbscript:x)",
        "[x](data:text/html,<script>)",
        "![x](javascript:alert(1))",
        "![x](data:image/svg+xml,<svg onload=alert(1)>)",
        '[x](https://a.example/"onmouseover="alert(1))',
        '!["><script>](https://a.example)',
        "<https://a.example/<script>>",
        "| <script> |\n|---|\n| <img src=x onerror=alert(1)> |",
        "~~~<script>\nx\n~~~",
    ],
)
def test_no_text_becomes_a_script(text: str) -> None:
    html = PageTexts().html(text)
    tags = re.findall(r"<(\w+)([^>]*)>", html)
    known = {"p", "a", "pre", "code", "div", "table", "thead", "tbody", "tr", "th", "td", "img"}
    assert {name for name, _ in tags} <= known
    for _, attributes in tags:
        names = re.findall(r'([\w-]+)="[^"]*"', attributes)
        assert set(names) <= {"dir", "href", "rel", "tabindex", "class", "src", "alt"}, html
        assert re.sub(r'[\w-]+="[^"]*"', "", attributes).strip() == "", html
        for value in re.findall(r'(?:href|src)="([^"]*)"', attributes):
            assert value.startswith(("https://", "data:image/")), html


@pytest.mark.parametrize(
    ("url", "is_link"),
    [
        ("https://a.example", True), ("HTTP://a.example", True), ("mailto:a@a.example", True),
        ("/a", True), ("a", True), ("#a", True), ("smb://a/b", False), ("ms-msdt:x", False),
        ("JaVaScRiPt:x", False), ("tel:1", False), ("data:text/html;x", False),
    ],
)  # fmt: skip
def test_texts_link_to_few_schemes(url: str, is_link: bool) -> None:
    assert ("<a " in PageTexts().html(f"[x]({url})")) == is_link
    if ":" in url:
        assert ("<a " in PageTexts().html(f"<{url}>")) == is_link


def test_columns_are_aligned_without_styles_of_their_own() -> None:
    html = PageTexts().html("| a | b | c |\n|:-:|--:|---|\n| 1 | 2 | 3 |")
    assert "style" not in html
    assert '<th class="center" dir="auto">' in html
    assert '<td class="right" dir="auto">' in html
    assert '<td dir="auto">' in html


def test_a_long_text_is_cut_and_says_so() -> None:
    html = PageTexts().html("x" * (LONGEST + 1))
    assert "512,000 of 512,001 characters" in html
    assert html.startswith("<pre")
    assert "The first 10 of 12" in PageTexts().html("x" * 12, 10)


@pytest.mark.parametrize(
    "part", [r"\(", r"\[", "$$a", "$a", "![", "[", "[a](", "**a", "*_", "<!--", "a|b\n-|-\n"]
)
@pytest.mark.parametrize("length", [LONGEST_MARKDOWN, LONGEST])
def test_no_text_takes_long(part: str, length: int) -> None:
    started = time.thread_time()
    PageTexts().html((part * length)[:length])
    assert time.thread_time() - started < 5


def test_a_page_is_bounded_not_only_each_of_its_texts() -> None:
    texts = PageTexts()
    part = "*a* " * (LONGEST_MARKDOWN // 4)
    shown = [texts.html(part) for _ in range(LONGEST // LONGEST_MARKDOWN + 1)]
    assert [each.startswith("<p dir") for each in shown] == [
        True,
        True,
        *[False] * (len(shown) - 2),
    ]
    assert "The first 0 of 32,000 characters" in shown[-1]


def test_mathematics_that_nothing_closes_is_text() -> None:
    html = PageTexts().html(r"\( and *more*")
    assert html == '<p dir="auto">( and <em>more</em></p>\n'
