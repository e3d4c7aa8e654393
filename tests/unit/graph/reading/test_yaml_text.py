"""YAML: what is read as which value, what is refused, and where the finger points."""

from __future__ import annotations

import json
import re
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from planwave.errors import GraphInvalid
from planwave.graph.reading.strict_json import parse_strict_json
from planwave.graph.reading.yaml_text import parse_yaml
from planwave.jsonio import MAX_JSON_DEPTH
from tests.support.cpu_time import cpu_within
from tests.support.paths import ROOT

HOSTILE = ROOT / "tests/data/import/hostile"

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False, max_value=1e307, min_value=-1e307)
    | texts.filter(lambda text: not re.fullmatch(r"[-+]?\d+[eE]\d{3,}", text)),  # 12e4567
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=15,
)


@pytest.fixture(params=["compiled", "pure"], autouse=True)
def loader(request: pytest.FixtureRequest) -> Iterator[None]:
    """Both parsers of PyYAML, the second of which is used where it was built without libyaml."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "pure":
            patch.delattr(yaml, "CSafeLoader", raising=False)
        yield


def refusal(text: str | bytes, **limits: int) -> tuple[list[str], str]:
    with pytest.raises(GraphInvalid) as caught:
        parse_yaml(text, **limits)
    return [d.code for d in caught.value.diagnostics], str(caught.value)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("Null", None),
        ("nULL", "nULL"),
        ("true", True),
        ("FALSE", False),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("Off", "Off"),
        ("y", "y"),
        ("0", 0),
        ("-0", 0),
        ("+7", 7),
        ("-12", -12),
        ("010", "010"),
        ("-010", "-010"),
        ("1:30", "1:30"),
        ("1_000", "1_000"),
        ("0x1F", 31),
        ("0o17", 15),
        ("0b11", "0b11"),
        ("1.50", 1.5),
        (".5", 0.5),
        ("-.5", -0.5),
        ("2.", 2.0),
        ("1e3", 1000.0),
        ("1E-2", 0.01),
        ("01e3", "01e3"),
        (".", "."),
        ("+", "+"),
        ("1.2.3", "1.2.3"),
        ("2026-01-01", "2026-01-01"),
        ("2026-01-01T10:00:00Z", "2026-01-01T10:00:00Z"),
        ("12:30:45", "12:30:45"),
        ("'12'", "12"),
        ('"true"', "true"),
        ('"\\u00e9"', "é"),
        ("<<", "<<"),
        ("=", "="),
        ("https://example.com/a#b", "https://example.com/a#b"),
    ],
)
def test_scalars_have_the_types_of_the_core_schema(written: str, value: object) -> None:
    read = parse_yaml(f"a: {written}\n")
    assert read == {"a": value}
    assert isinstance(read, dict)
    assert type(read["a"]) is type(value)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\x85", "\u2028", "\u2029"])
def test_a_byte_order_mark_begins_the_text_and_no_later_line(end: str) -> None:
    """The parsers of PyYAML differ on it: one leaves it out, the other reads it as text."""
    codes, message = refusal(f"a: 1{end}\ufeffb: 2")
    assert codes == ["invalid-yaml"]
    assert "U+FEFF at line" in message
    assert parse_yaml('\ufeffa: "\ufeff"\nb: x\ufeff') == {"a": "\ufeff", "b": "x\ufeff"}


def test_blocks_and_keys_are_text_as_written() -> None:
    text = "a: |\n  one\n  two\nb: >-\n  folded\n  text\n1: x\nnull: y\ntrue: z\n2026-01-01: d\n'<<': m\n"
    assert parse_yaml(text) == {
        "a": "one\ntwo\n", "b": "folded text",
        "1": "x", "null": "y", "true": "z", "2026-01-01": "d", "<<": "m",
    }  # fmt: skip


@pytest.mark.parametrize("text", ["just words", "- 1\n- b: [2, {c: d}]\n", "# note\na: 1\n...\n"])
def test_any_value_may_be_the_document(text: str) -> None:
    assert parse_yaml(text) == yaml.safe_load(text)


@given(json_values)
@example({"k": "\ufeff", "\u2028": "\x85"})
def test_json_without_escapes_of_surrogates_is_yaml(value: Any) -> None:
    """What JSON writes, with keys that a YAML reader accepts, is read alike."""
    text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    text = "".join(f"\\u{ord(c):04x}" if is_control(c) else c for c in text)
    assert parse_yaml(text) == parse_strict_json(text)


def is_control(character: str) -> bool:
    """Whether YAML allows the character only as an escape, or folds it."""
    return "\x7f" <= character <= "\x9f" or character in "\u2028\u2029\ufffe\uffff"


@given(json_values)
def test_what_a_usual_writer_writes_is_read_back(value: Any) -> None:
    """PyYAML quotes every text that YAML 1.1 or its own resolver takes for something else."""
    dumped = yaml.safe_dump(value, allow_unicode=False)
    read = parse_yaml(dumped)
    assert json.dumps(read) == json.dumps(value) or reread_as_number(value, read)


def reread_as_number(value: object, read: object) -> bool:
    """Whether the only differences are texts such as ``1e3`` and ``0o7``, which PyYAML leaves without quotes."""
    if isinstance(value, dict) and isinstance(read, dict):
        pairs = [(value[k], read.get(k)) for k in value]
        return set(value) == set(read) and all(reread_as_number(*pair) for pair in pairs)
    if isinstance(value, list) and isinstance(read, list):
        return len(value) == len(read) and all(map(reread_as_number, value, read))
    return json.dumps(value) == json.dumps(read) or (
        isinstance(value, str) and isinstance(read, (int, float)) and parse_yaml(value) == read
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &x 1\n", "an anchor at line 1, column 4 of the YAML"),
        ("a: &x [1]\n", "an anchor at line 1, column 4 of the YAML"),
        ("a: *x\n", "an alias at line 1, column 4 of the YAML"),
        ("a: 1\nb: !!str 1\n", "the tag 'tag:yaml.org,2002:str' at line 2, column 4 of the YAML"),
        ("a: ! 1\n", "the tag '!' at line 1, column 4 of the YAML"),
        ("!secret\na: 1\n", "the tag '!secret' at line 1, column 1 of the YAML"),
        ("a: !x [1]\n", "the tag '!x' at line 1, column 4 of the YAML"),
        ("a:\n  <<: {b: 1}\n", "a merge key at line 2, column 3 of the YAML"),
        ("a: {{ input }}\n", "a key that is a collection at line 1, column 5 of the YAML"),
        ("? [1]\n: 2\n", "a key that is a collection at line 1, column 3 of the YAML"),
        ("? {a: 1}\n: 2\n", "a key that is a collection at line 1, column 3 of the YAML"),
        ("a: 1\n---\nb: 2\n", "a second document at line 2, column 1 of the YAML"),
    ],
)
def test_what_is_not_plain_data_is_refused_with_its_place(text: str, message: str) -> None:
    codes, refused = refusal(text)
    assert codes == ["unsupported-yaml"]
    assert message in refused


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "the document is empty"),
        ("# only a comment\n", "the document is empty"),
        ("a: b: c\n", "line 1, column 5"),
        ("a: [1, 2\n", "line 2, column 1"),
        ("a: 1\nb: 'open\n", "line 3, column 1"),
        ("a: 1\nb: x\x00y\n", "the character U+0000 at line 2, column 5"),
        ("\x7f", "the character U+007F at line 1, column 1"),
        ("a\n\x1b", "the character U+001B at line 2, column 1"),
        (b"a: \xff", "not UTF-8: byte 3 is 0xff"),
        ('"\\U00110000"', "not YAML: "),
    ],
)
def test_text_that_is_not_yaml_names_line_and_column(text: str | bytes, place: str) -> None:
    codes, refused = refusal(text)
    assert codes == ["invalid-yaml"]
    assert place in refused


@pytest.mark.parametrize(
    ("text", "code", "pointer"),
    [
        ("a: 1\nb: {c: 1, c: 2}\n", "duplicate-key", "/b"),
        ("1: x\n'1': y\n", "duplicate-key", ""),
        ("a: [.nan]\n", "invalid-number", "/a/0"),
        ("a: -.inf\n", "invalid-number", "/a"),
        ("a: 1e999\n", "invalid-number", "/a"),
        (f"a: {'9' * 400}\n", "invalid-number", "/a"),
        (f"a: 0x{'f' * 400}\n", "invalid-number", "/a"),
        ('a: "\\0"\n', "invalid-text", "/a"),
    ],
)
def test_values_that_no_store_keeps_have_the_codes_of_strict_json(
    text: str, code: str, pointer: str
) -> None:
    with pytest.raises(GraphInvalid) as caught:
        parse_yaml(text)
    assert [(d.code, d.pointer) for d in caught.value.diagnostics] == [(code, pointer)]


def test_a_lone_surrogate_is_refused_as_text_and_as_escape() -> None:
    assert refusal("a: \ud800")[0] == ["invalid-text"]
    assert refusal('a: "\\ud800"')[0] in (["invalid-yaml"], ["invalid-text"])


def test_size_and_nesting_are_limited_before_anything_is_built() -> None:
    assert refusal("a: 12345", max_bytes=7)[0] == ["limit-exceeded"]
    assert parse_yaml("[[1]]", max_depth=2) == [[1]]
    assert refusal("[[[1]]]", max_depth=2)[0] == ["limit-exceeded"]
    deepest = "[" * MAX_JSON_DEPTH + "]" * MAX_JSON_DEPTH
    assert parse_yaml(deepest) == parse_strict_json(deepest)
    assert refusal(f"[{deepest}]", max_depth=1000)[0] == ["limit-exceeded"]


@pytest.mark.parametrize("start", ["[", "{a: ", "- ", "? ", "{? ", "a:\n", "[{b: "])
def test_deep_nesting_is_refused_without_recursion(start: str) -> None:
    text = start * 20_000
    if start == "a:\n":
        text = "".join(f"{' ' * level}a:\n" for level in range(200))
    codes, _ = refusal(text)
    assert codes in (["limit-exceeded"], ["unsupported-yaml"], ["invalid-yaml"])


def test_an_alias_bomb_is_refused_at_its_first_anchor() -> None:
    text = (HOSTILE / "alias_bomb.yml").read_bytes()
    tracemalloc.start()
    try:
        with cpu_within(1):
            codes, message = refusal(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert codes == ["unsupported-yaml"]
    assert "an anchor at line 4, column 4" in message
    assert peak < 5_000_000


def test_a_python_tag_is_refused_and_nothing_is_called() -> None:
    codes, message = refusal((HOSTILE / "python_tag.yml").read_bytes())
    assert codes == ["unsupported-yaml"]
    assert "python/object/apply:os.getcwd" in message
    assert "line 3, column 29" in message


def test_a_byte_order_mark_and_windows_line_ends_change_nothing() -> None:
    raw = (HOSTILE / "bom_and_crlf.yml").read_bytes()
    assert raw.startswith(b"\xef\xbb\xbf")
    assert b"\r\n" in raw
    read = parse_yaml(raw)
    assert read == parse_yaml(raw.decode("utf-8-sig").replace("\r\n", "\n"))
    assert isinstance(read, dict)
    assert set(read) == {"app", "kind", "version", "workflow"}
