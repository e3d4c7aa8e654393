from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.providers.reply_text import ReplyReader, calls_in_text, json_text, split_reasoning

CHANNELS = "<|channel|>analysis<|message|>why<|end|><|start|>assistant<|channel|>final<|message|>4<|return|>"
REASONING = {
    **{
        f"{tag}: {form}": form.format(f"<{tag}>", f"</{tag}>")
        for tag in ("think", "thinking", "thought", "reasoning", "Think", "seed:think")
        for form in ("{}why{}4", "{}\nwhy\n{}\n\n4", " \n{}why{} 4", "4\n{}why{}\n", "why{1}4", "why\n{1}\n\n4")
    },
    "attribute": '<think type="deep" n="1">why</think>4',
    "two sections": "<think>wh</think>\n<think>y</think>\n4",
    "section before and after": "<think>wh</think>4\n<think>y</think>",
    "stray closing tag after a section": "<think>why</think>\n</think>\n4",
    "closing tag after a sentence": "Two and two. </think> 4",
    "Mistral": "[THINK]why[/THINK]4",
    "Kimi": "\u25c1think\u25b7why\u25c1/think\u25b74",
    "gpt-oss": CHANNELS,
    "gpt-oss with the role": "<|start|>assistant" + CHANNELS,
    "gpt-oss without the last mark": CHANNELS.removesuffix("<|return|>"),
    "gpt-oss without the final channel": "<|channel|>analysis<|message|>why<|end|>4",
}  # fmt: skip
ABOUT = (
    "Use `<think>` and `</think>` to think.",
    "Use `</think>` to end it.",
    "Write\n```\n<think>a</think>\n```\nand go on.",
    "Write\n```xml\n</think>\n```\nand go on.",
    "~~~\n<think>a</think>\n~~~",
    "The tags <think> and </think> are marks.",
    "It ends with </think> and then answers.",
    "The tag '</think>' and \"</think>\" too.",
    '{"a": "the tag </think> ends", "b": "<think>"}',
    "First\n<think>in the middle</think>\nlast",
    "<thinker>a</thinker>4",
    "<b>4</b> < 5 [1, 2] x[0] <|x|> <",
    "[1, 2]",
    "",
)


def read(text: str, size: int) -> tuple[ReplyReader, str]:
    """Read a text in pieces; give the reader, and the text as a listener sees it."""
    reader, shown = ReplyReader(), ""
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    deltas = [delta for piece in pieces for delta in reader.feed(piece)]
    for delta in (*deltas, *reader.end()):
        if delta.kind == "discarded":
            shown = ""
        shown += delta.text if delta.kind == "text" else ""
    return reader, shown


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
@pytest.mark.parametrize("form", REASONING)
def test_reasoning_is_told_from_the_text_however_it_arrives(form: str, size: int) -> None:
    reader, shown = read(REASONING[form], size)
    assert reader.text.strip() == "4" == shown.strip()
    assert reader.text == reader.text.rstrip()
    assert "why" in reader.reasoning.lower() or reader.reasoning == "Two and two."
    assert json_text(REASONING[form]) == "4"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
@pytest.mark.parametrize("text", ABOUT)
def test_text_about_tags_stays_as_it_is(text: str, size: int) -> None:
    reader, shown = read(text, size)
    assert (reader.text, reader.reasoning, shown) == (text, "", text)
    assert split_reasoning(text) == (text, "")


@given(st.text(alphabet='ab <>/[]|`\n"{}', max_size=60), st.integers(1, 9))
def test_text_without_reasoning_is_never_changed(text: str, size: int) -> None:
    reader, shown = read(text, size)
    assert reader.text == shown == text


@given(st.text(alphabet='<think>/ a\n`{"', max_size=40), st.integers(1, 9))
def test_the_size_of_the_pieces_changes_nothing(text: str, size: int) -> None:
    whole, _ = read(text, 10_000)
    parts, shown = read(text, size)
    assert (parts.text, parts.reasoning) == (whole.text, whole.reasoning)
    assert shown.rstrip() == parts.text.rstrip()


def test_reply_that_begins_inside_reasoning_is_streamed_as_such() -> None:
    reader = ReplyReader(begins_inside=True)
    assert [delta.kind for delta in reader.feed("why")] == ["reasoning"]
    assert [*reader.feed("</think>4")] == [("4", "text")]
    assert (reader.reasoning, reader.text, reader.has_lone_end) == ("why", "4", False)
    without = ReplyReader(begins_inside=True)
    assert [*without.feed("4"), *without.end()] == [("4", "reasoning"), ("4", "text")]
    assert (without.text, without.reasoning) == ("4", "")


@pytest.mark.parametrize(
    "reply",
    [
        '{"a": 1}',
        '```json\n{"a": 1}\n```',
        '~~~\n{"a": 1}\n~~~',
        'Here it is:\n```\n{"a": 1}\n```\nDone.',
        '<tool_call>\n{"name": "reply", "arguments": {"a": 1}}\n</tool_call>',
        '<tool_call>{"name": "reply", "arguments": "{\\"a\\": 1}"}</tool_call>',
        '<tool_call>{"a": 1}</tool_call>',
        '<think>{"a": 2}?</think>\n```json\n{"a": 1}```',
    ],
)
def test_json_document_of_a_reply_is_found(reply: str) -> None:
    assert json_text(reply) == '{"a": 1}'


@pytest.mark.parametrize(
    "reply", ["```\n1\n```\n```\n2\n```", "```\n1", "nothing", "a\n~~~\n```\n1"]
)
def test_reply_without_one_certain_document_is_left_alone(reply: str) -> None:
    assert json_text(reply) == reply


def test_calls_that_a_server_left_in_the_text_are_found() -> None:
    call = '<tool_call>\n{"name": "look", "arguments": {"city": "Oslo"}}\n</tool_call>'
    other = call.replace("Oslo", "Rome")
    assert calls_in_text(f"I look.\n{call}\n{other}", {"look"}) == (
        "I look.", [("look", '{"city": "Oslo"}'), ("look", '{"city": "Rome"}')],
    )  # fmt: skip
    for text in (f"say {call}", f"```\n{call}\n```", call.replace("look", "x"), "<tool_call>x"):
        assert calls_in_text(text, {"look"}) == (text, [])
