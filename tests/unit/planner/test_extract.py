"""Which text is taken for the plan, and what is said where there is none."""

from __future__ import annotations

import pytest

from planwave.planner.extract import RETRY_WITHOUT_REPLY, extract_document

DOCUMENT = '{"nodes": [], "edges": []}'


def test_a_bare_document_is_taken_as_it_is() -> None:
    found = extract_document(f"\ufeff \n{DOCUMENT}\n")
    assert (found.text, found.fixes, found.error) == (DOCUMENT, (), None)


@pytest.mark.parametrize(
    ("reply", "dropped"),
    [
        (f"```json\n{DOCUMENT}\n```", ""),
        (f"```\n{DOCUMENT}```", ""),
        (f"  ```JSON\n{DOCUMENT}\n  ```  ", ""),
        (f"Sure!\n\n```json\n{DOCUMENT}\n```\nEnjoy.", "13 characters"),
    ],
)
def test_one_fenced_block_is_taken_out_and_recorded(reply: str, dropped: str) -> None:
    found = extract_document(reply)
    assert (found.text, found.error) == (DOCUMENT, None)
    assert len(found.fixes) == 1
    assert "code fence" in found.fixes[0]
    assert dropped in found.fixes[0]


def test_a_fence_inside_a_string_is_part_of_the_document() -> None:
    document = '{"nodes": [{"id": "a", "description": "write ```x``` and ```"}], "edges": []}'
    assert extract_document(document).text == document
    assert extract_document(f"```json\n{document}\n```").text == document


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\u0085"])
def test_marks_that_only_some_take_for_line_ends_stay_in_the_strings_of_a_fenced_plan(
    mark: str,
) -> None:
    document = f'{{"nodes": [{{"id": "a", "description": "one{mark}two"}}], "edges": []}}'
    assert extract_document(f"```json\r\n{document}\r\n```").text == document


@pytest.mark.parametrize("tag", ["thinking", "think", "THINK"])
def test_a_leading_thinking_section_is_dropped_and_recorded(tag: str) -> None:
    found = extract_document(f'<{tag}>maybe {{"nodes": 1}}\nhm</{tag}>\n```json\n{DOCUMENT}\n```')
    assert (found.text, found.error) == (DOCUMENT, None)
    assert len(found.fixes) == 2
    assert "maybe" not in " ".join(found.fixes)


@pytest.mark.parametrize(
    ("reply", "code", "said"),
    [
        ("", "empty-reply", "nothing"),
        ("nodes:\n  - id: a\n", "invalid-json", "YAML"),
        ("---\nnodes: []\n", "invalid-json", "YAML"),
        (f"// plan\n{DOCUMENT}", "invalid-json", "comment"),
        (f"# plan\n{DOCUMENT}", "invalid-json", "comment"),
        ('{"nodes": [ // none\n], "edges": []}', "invalid-json", "character 12"),
        ("I would rather not.", "invalid-json", "no JSON"),
        (f"The plan: {DOCUMENT}", "invalid-json", "text around"),
        (f"{DOCUMENT}{DOCUMENT}", "trailing-data", "character 26"),
        (f"{DOCUMENT}\n\nThat is it.", "trailing-data", "character 28"),
        (f"```\n{DOCUMENT}\n```\n```\n{DOCUMENT}\n```", "several-documents", "2 fenced"),
        ('{"nodes": [', "truncated-reply", "2 brackets open"),
        ('{"nodes": [{"id": "a", "name": "x\\', "truncated-reply", "inside a string"),
        (f"```json\n{DOCUMENT[:-1]}", "truncated-reply", "code fence"),
        ("<html><body>502 Bad Gateway</body></html>", "html-reply", "502 Bad Gateway"),
        ("<!DOCTYPE html>", "html-reply", "HTML"),
        ("<thinking>never closed {", "invalid-json", "text around"),
    ],
)
def test_anything_else_is_named_and_never_guessed(reply: str, code: str, said: str) -> None:
    fault = extract_document(reply).error
    assert fault is not None
    assert (fault.code, fault.severity) == (code, "error")
    assert said in fault.message


def test_a_reply_cut_off_for_its_length_says_so_even_where_it_looks_whole() -> None:
    for reply in (DOCUMENT, DOCUMENT[:-1], "", "```json\n{"):
        fault = extract_document(reply, "length").error
        assert fault is not None
        assert fault.code == "truncated-reply"
        assert "finish_reason length" in fault.message
        assert "shorter plan" in (fault.hint or "")


@pytest.mark.parametrize("reply", ["null", "42", "-1.5e3", "true", '"a plan"', "[]", "[" * 9])
def test_other_json_is_left_to_the_reader_to_name(reply: str) -> None:
    assert extract_document(reply).error is None


def test_faults_of_the_way_are_told_from_faults_of_the_plan() -> None:
    fault = extract_document("<html>").error
    assert fault is not None
    assert fault.code in RETRY_WITHOUT_REPLY


@pytest.mark.parametrize(
    "reply",
    ['{"a":"' + "x" * 3_000_000, '{"a":' * 300_000, "\\" * 2_000_000, '{"' + '\\"' * 1_000_000],
    ids=["string", "brackets", "backslashes", "escapes"],
)
@pytest.mark.timeout(60)
def test_long_hostile_replies_are_read_in_linear_time(reply: str) -> None:
    assert extract_document(reply).error is not None
