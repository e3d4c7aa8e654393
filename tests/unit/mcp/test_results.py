"""What a model gets as the result of a call."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st
from mcp_types import CallToolResult

from planwave.errors import McpError
from planwave.jsonio import dumps_exact
from planwave.mcp.results import result_of

TEXT = {"type": "text", "text": "a"}


def result(*content: Any, **fields: Any) -> CallToolResult:
    return CallToolResult.model_validate({"content": list(content), **fields})


@pytest.mark.parametrize(
    ("given", "value"),
    [
        (result(TEXT, {"type": "text", "text": "b"}), "a\nb"),
        (result(), ""),
        (result(TEXT, structured_content={"n": 1}), {"n": 1}),
        (
            result(TEXT, {"type": "image", "data": "iVBORw==", "mimeType": "image/png"}),
            {
                "content": [
                    {"type": "text", "text": "a"},
                    {"type": "image", "mimeType": "image/png", "bytes": 4},
                ]
            },
        ),
        (
            result(
                {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
                structured_content={"n": 1},
            ),
            {
                "content": [{"type": "audio", "mimeType": "audio/wav", "bytes": 3}],
                "structured": {"n": 1},
            },
        ),
        (
            result(
                {"type": "resource_link", "uri": "file:///a", "name": "A"},
                {"type": "resource", "resource": {"uri": "file:///b", "text": "inside"}},
                {"type": "resource", "resource": {"uri": "file:///c", "blob": "AAAA"}},
            ),
            {
                "content": [
                    {"type": "link", "uri": "file:///a", "name": "A"},
                    {"type": "resource", "uri": "file:///b", "text": "inside"},
                    {"type": "resource", "uri": "file:///c", "mimeType": None, "bytes": 3},
                ]
            },
        ),
    ],
)
def test_content_becomes_json(given: CallToolResult, value: Any) -> None:
    assert result_of(given, "act", 1_000) == value


def test_an_error_is_its_text() -> None:
    with pytest.raises(McpError, match=r"^no such order$") as caught:
        result_of(result({"type": "text", "text": "no such order"}, is_error=True), "act", 5)
    assert caught.value.code == "mcp-tool-error"
    with pytest.raises(McpError, match="the tool 'act' failed without a message"):
        result_of(result(is_error=True), "act", 5)
    with pytest.raises(McpError) as caught:
        result_of(result({"type": "text", "text": "x" * 9_000}, is_error=True), "act", 5)
    assert len(caught.value.message) == 4_000


def test_an_error_without_a_text_is_its_structured_content() -> None:
    with pytest.raises(McpError, match=r'^\{"reason":"no stock"\}$') as caught:
        result_of(result(is_error=True, structured_content={"reason": "no stock"}), "act", 5)
    assert caught.value.code == "mcp-tool-error"
    said = result(TEXT, is_error=True, structured_content={"reason": "no"})
    with pytest.raises(McpError, match=r"^a$"):
        result_of(said, "act", 5)


def test_a_text_above_the_limit_is_cut_and_says_so() -> None:
    given = result({"type": "text", "text": "ä" * 200})
    assert result_of(given, "act", 402) == "ä" * 200
    cut = result_of(given, "act", 401)
    assert isinstance(cut, str)
    assert cut.startswith("ä" * 100)
    assert cut.endswith(
        "[cut: the result has 402 bytes, and may have 401 (limit mcp_result_bytes)]"
    )


def test_structured_content_above_the_limit_is_a_cut_text_with_a_mark() -> None:
    cut = result_of(result(structured_content={"rows": ["x" * 9] * 100}), "act", 400)
    assert cut["json"].startswith('{"rows":["xxxxxxxxx",')
    assert "limit mcp_result_bytes" in cut["cut"]


def test_of_several_parts_the_last_ones_are_cut() -> None:
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    cut = result_of(result(image, TEXT, {"type": "text", "text": "b" * 9_000}, image), "act", 500)
    assert [part["type"] for part in cut["content"]] == ["image", "text", "text"]
    assert cut["content"][1]["text"] == "a"
    assert "limit mcp_result_bytes" in cut["cut"]


_CHARACTERS = st.characters(
    exclude_characters="\0", exclude_categories=["Cs"]
)  # no results hold them
_BLOCKS = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, st.text(_CHARACTERS, max_size=300)),
    st.just({"type": "image", "data": "AAAA", "mimeType": "image/png"}),
    st.builds(
        lambda t: {"type": "resource", "resource": {"uri": "a:b", "text": t}}, st.text(_CHARACTERS)
    ),
)


@for_all(
    st.lists(_BLOCKS, max_size=6),
    st.none()
    | st.dictionaries(
        st.text(_CHARACTERS, max_size=30), st.text(_CHARACTERS, max_size=300), max_size=5
    ),
    st.integers(250, 1_000),
)
def test_no_result_is_larger_than_the_limit_or_lost(
    blocks: list[Any], structured: Any, most_bytes: int
) -> None:
    given = result(*blocks, structured_content=structured)
    whole = result_of(given, "act", 10**9)
    size = len(dumps_exact(whole).encode())
    found = result_of(given, "act", most_bytes)
    assert len(dumps_exact(found).encode()) <= most_bytes
    assert (found == whole) == (size <= most_bytes)
    assert size <= most_bytes or "limit mcp_result_bytes" in dumps_exact(found)


def test_a_result_that_is_nested_too_deep_is_refused() -> None:
    deep: Any = {}
    for _ in range(100):
        deep = {"a": deep}
    with pytest.raises(McpError) as caught:
        result_of(result(structured_content=deep), "act", 10_000)
    assert caught.value.code == "mcp-invalid-answer"
