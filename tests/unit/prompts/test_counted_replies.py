"""How many things a goal asks for, and the grammar of such a reply."""

from __future__ import annotations

import re

import pytest

from planwave.prompts.counted_replies import Count, counted_grammar, requested_count


@pytest.mark.parametrize(
    ("goal", "count"),
    [
        ("Give me ten ideas for a rainy day", Count(10, sentences=False)),
        ("Please list 12 quick, healthy snacks", Count(12, sentences=False)),
        ("Can you suggest five names for a cat?", Count(5, sentences=False)),
        ("What are the three main causes of the war?", Count(3, sentences=False)),
        ("Summarise in three points why sleep matters", Count(3, sentences=False)),
        ("Explain tides in two short sentences", Count(2, sentences=True)),
        ("Summarise the war in Five Sentences", Count(5, sentences=True)),
        ("Write a letter to my two sisters", None),
        ("Write three poems", None),
        ("Plan a trip for two people in three days", None),
        ("Plan a party for a ten-year-old", None),
        ("List 200 words", None),
        ("List one word", None),
        ("Compare three ways to store data", None),
        ("", None),
    ],
)
def test_only_numbers_of_what_is_asked_for_count(goal: str, count: Count | None) -> None:
    assert requested_count(goal) == count


def test_a_list_has_exactly_its_lines() -> None:
    root = counted_grammar(Count(3, sentences=False)).splitlines()[0]
    assert root == r'root ::= "1. " line "\n" "2. " line "\n" "3. " line "\n"?'


def test_a_choice_has_a_line_after_the_list() -> None:
    root = counted_grammar(Count(2, sentences=False), closing_line=True).splitlines()[0]
    assert root == r'root ::= "1. " line "\n" "2. " line "\n" line "\n"?'


@pytest.mark.parametrize(("number", "chars"), [(2, 240), (10, 160), (20, 80)])
def test_lines_are_short_enough_for_the_tokens_of_a_reply(number: int, chars: int) -> None:
    grammar = counted_grammar(Count(number, sentences=False))
    assert f"line ::= [^\\n]{{1,{chars}}}" in grammar.splitlines()


def test_sentences_are_one_paragraph() -> None:
    root = counted_grammar(Count(5, sentences=True)).splitlines()[0]
    assert root == r'root ::= sentence (" " sentence){4} "\n"?'


def test_inside_a_sentence_a_full_stop_stands_in_numbers_and_names_only() -> None:
    # A model that was held to five sentences wrote a sixth without a space: "and anger.The revolution".
    grammar = counted_grammar(Count(2, sentences=True))
    sentence = grammar.splitlines()[-1].removeprefix("sentence ::= ").replace(" ", "")
    assert re.fullmatch(sentence, "It costs 1.5 million, says node.js.")
    assert not re.fullmatch(sentence, "It led to anger.The war began.")
    assert not re.fullmatch(sentence, "It led to anger. The war began.")
