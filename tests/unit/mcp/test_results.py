"""What a model gets as the result of a call."""

from __future__ import annotations

from typing import Any

import pytest
from mcp_types import CallToolResult

from planwave.errors import LimitExceeded, McpError
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


def test_the_size_counts_in_bytes_of_json() -> None:
    given = result({"type": "text", "text": "ä" * 10})
    assert result_of(given, "act", 22) == "ä" * 10
    with pytest.raises(LimitExceeded, match=r"limit mcp_result_bytes .* is 21, met 22"):
        result_of(given, "act", 21)


def test_a_result_that_is_nested_too_deep_is_refused() -> None:
    deep: Any = {}
    for _ in range(100):
        deep = {"a": deep}
    with pytest.raises(McpError) as caught:
        result_of(result(structured_content=deep), "act", 10_000)
    assert caught.value.code == "mcp-invalid-answer"
