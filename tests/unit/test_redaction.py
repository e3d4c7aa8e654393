"""Secrets in texts and JSON: every spelling, in every place."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.errors import NodeError
from planwave.redaction import NOTHING_SECRET, Redactor
from tests.support.secret_spellings import CANARY, SPELLINGS, shows

CRM = Redactor({"crm": CANARY})
PLACES: dict[str, Callable[[str], Any]] = {
    "text": str,
    "beside other text": lambda text: f'{{"you": "{text}"}} \\ & %',
    "value": lambda text: {"you": text},
    "key": lambda text: {f"x {text}": 1},
    "list": lambda text: [[1, None, True, [text]]],
    "JSON as text": lambda text: json.dumps({"you": text}),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_spelling_is_let_through(spelling: str, place: str) -> None:
    spelled = SPELLINGS[spelling](CANARY)
    withheld = CRM.value(PLACES[place](spelled))
    assert shows(str(withheld)) == []
    assert spelled not in str(withheld)
    assert "[secret crm]" in str(withheld)
    assert CRM.value(withheld) == withheld


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_text_around_a_secret_stays(spelling: str) -> None:
    withheld = CRM.text(f"before {SPELLINGS[spelling](CANARY)} after")
    assert withheld.startswith("before ")
    assert withheld.endswith(" after")


_CHAR_SPELLINGS: tuple[Callable[[str], str], ...] = tuple(
    SPELLINGS[name]
    for name in ("as it is", "JSON, all escaped", "JavaScript", "percent", "percent twice",
                 "HTML, decimal", "HTML, hexadecimal")
)  # fmt: skip


@given(
    st.text("abcXYZ019+/=-_.~:@<>&'\"", min_size=6, max_size=40).filter(
        lambda text: "\\" not in text
    ),
    st.lists(st.sampled_from(_CHAR_SPELLINGS), min_size=40, max_size=40),
)
def test_characters_may_each_be_spelled_in_another_way(
    secret: str, spells: list[Callable[[str], str]]
) -> None:
    spelled = "".join(spell(char) for spell, char in zip(spells, secret, strict=False))
    withheld = Redactor({"k": secret}).text(f"<{spelled}>")
    assert spelled not in withheld
    assert "[secret k]" in withheld


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
                    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20))  # fmt: skip
def test_values_without_a_secret_are_the_same_object(value: Any) -> None:
    assert CRM.value(value) is value


def test_numbers_that_are_a_secret_are_withheld() -> None:
    pin = Redactor({"pin": "12345678"})
    assert pin.value({"pin": 12345678, "other": 1.5}) == {"pin": "[secret pin]", "other": 1.5}


def test_longer_secrets_go_first_and_several_are_found() -> None:
    both = Redactor({"short": "abcdefgh", "long": "abcdefgh-and-more", "empty": ""})
    assert both.text("abcdefgh-and-more, abcdefgh") == "[secret long], [secret short]"


def test_short_secrets_are_found_in_their_usual_escapes_only() -> None:
    short = Redactor({"pin": "a/b"})
    assert short.text('a/b "a\\/b" a%2Fb a\nb YS9i') == (
        '[secret pin] "[secret pin]" [secret pin] a\nb YS9i'
    )


def test_what_is_no_json_is_left_to_who_stores_it() -> None:
    value = {"a": {1, 2}}
    assert CRM.value(value) is value  # type: ignore[arg-type]
    assert NOTHING_SECRET.text(CANARY) == CANARY


def test_an_error_is_cleaned_with_its_hint() -> None:
    error = NodeError(f"it said {CANARY}", hint=f"not {CANARY}")
    CRM.clean(error)
    assert [error.message, error.hint, str(error)] == [
        "it said [secret crm]", "not [secret crm]", "it said [secret crm]",
    ]  # fmt: skip


def test_a_long_text_is_read_in_time_that_grows_with_its_length() -> None:
    """Patterns with many choices must not be tried where nothing is found."""
    text = "\\/ &amp; %20 canary/AbC+def=ghi\n" * 20_000
    assert CRM.text(text) == text


@pytest.mark.parametrize("place", [lambda found: found, lambda found: {"data": [1, found, "x"]}])
def test_a_secret_as_a_list_of_its_bytes_is_withheld(place: Callable[[Any], Any]) -> None:
    found = CRM.value(place(list(CANARY.encode())))
    assert "[secret crm]" in str(found)
    assert str(list(CANARY.encode()))[1:-1] not in str(found)
