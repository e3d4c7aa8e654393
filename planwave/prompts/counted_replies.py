"""How many things a goal asks for, and grammars by which a reply has exactly as many, or an end at all.

Small models stop early, add one more or write one line for ever, whatever the prompt says. A grammar in
GBNF, the notation of llama.cpp, leaves them no choice. That of a count also fixes the form, a list or one
paragraph; so only requests whose form is certain count: "give me ten ideas", "in five sentences"; not "a
letter to my two sisters".
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_WORDS = (
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)
_NUMBERS: Final = {word: number for number, word in enumerate(_WORDS, 2)} | {
    str(number): number for number in range(2, 21)
}
"""Up to 20 lines can be written within the tokens of a last step."""
_NUMBER = rf"(?P<number>{'|'.join(sorted(_NUMBERS, key=len, reverse=True))})"
_MAX_CHARS: Final = 1_600
"""Of the whole reply, about 400 tokens."""
_MAX_LINE_CHARS: Final = 240
NOTES_GRAMMAR: Final = r"""
root ::= long ("\n" long){0,3} "\n"? | short ("\n" short){0,12} "\n"?
long ::= [^\n]{1,450}
short ::= [^\n]{1,130}
"""
"""Of what one step tells the next: four lines, or thirteen short ones, which a reply and its continuation
hold (some 440 tokens)."""
LIST_GRAMMAR: Final = r"""
root ::= item ("\n" item){5,13} "\n"?
item ::= "- " [^\n,:*]{1,80}
"""
"""Of a list whose length the goal leaves open: six to fourteen lines, one thing each."""
_LIST = re.compile(
    r"^\W*(?:(?:please|can|could|would|you) )*"
    r"(?:list|name|give|suggest|propose|find|tell|brainstorm|think of|come up with|what are)"
    rf"(?: me| us)?(?: the)? {_NUMBER}(?: [\w-]+,?){{0,2}}? [\w-]+s\b",
    re.IGNORECASE,
)
CHOICE_GRAMMAR: Final = r"""
root ::= (line gap){1,8} "Recommendation: " line "\n"?
gap ::= "\n" "\n"?
line ::= [^\n]{1,450}
"""
"""Of a comparison that ends with a choice, which small models forget at times. The gap before it is theirs: a model
that was held to an empty line there wrote its recommendation without one, and then went on."""
_OPEN_LIST = re.compile(
    r"^\W*(?:please )?(?:make|write|create|draw up|prepare|give)(?: me| us)?(?: an?| the| my| our)?"
    r"(?: [\w-]+)? (?:checklist|list)\b(?!-)",
    re.IGNORECASE,
)
_FORM = re.compile(
    rf"\bin {_NUMBER}(?: [\w-]+)? (?P<form>sentences|points|bullets)\b", re.IGNORECASE
)


class Count(NamedTuple):
    """How many sentences, or else lines of a list, a goal asks for."""

    number: int
    sentences: bool

    @property
    def text(self) -> str:
        """The count as a prompt says it."""
        if self.sentences:
            return f"{self.number} sentences of prose in one paragraph, no two of them about the same thing"
        return f"{self.number} numbered lines"


def requested_count(goal: str) -> Count | None:
    """Return how many things a goal asks for; None where it names no number, or where that is unsure."""
    match = _FORM.search(goal) or _LIST.match(goal)
    if match is None:
        return None
    form = match.groupdict().get("form", "")
    return Count(_NUMBERS[match["number"].lower()], sentences=form.lower() == "sentences")


def asks_for_list(goal: str) -> bool:
    """Return whether a goal asks for a list, whatever its length."""
    return _OPEN_LIST.match(goal) is not None


def counted_grammar(count: Count, *, closing_line: bool = False) -> str:
    """Return the grammar of a reply with exactly this count.

    Args:
        count: The sentences, in one paragraph, or the lines, which are numbered.
        closing_line: Whether one line without a number follows.
    """
    if count.sentences:
        items = [f'sentence (" " sentence){{{count.number - 1}}}']
    else:
        items = [f'"{number}. " line' for number in range(1, count.number + 1)]
    if closing_line:
        items.append("line")
    chars = min(_MAX_LINE_CHARS, _MAX_CHARS // count.number)
    root = r' "\n" '.join(items)
    return "\n".join(
        (
            rf'root ::= {root} "\n"?',
            rf"line ::= [^\n]{{1,{chars}}}",
            rf"sentence ::= [^\n.!?0-9:(_] ([^\n.!?:(_] | [.!?] [a-z0-9]){{1,{chars}}} [.!?]",
        )
    )
