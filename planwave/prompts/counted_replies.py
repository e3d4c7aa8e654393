"""How many things a goal asks for, and a grammar by which a reply has exactly as many.

Small models stop early or add one more, whatever the prompt says. A grammar in GBNF, the notation of
llama.cpp, leaves them no choice. It also fixes the form, a list or one paragraph; so only requests whose
form is certain count: "give me ten ideas", "in five sentences"; not "a letter to my two sisters".
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
"""Of the whole reply, about 400 tokens: without a bound, small models write one line for ever."""
_MAX_LINE_CHARS: Final = 240
_LIST = re.compile(
    r"^\W*(?:(?:please|can|could|would|you) )*"
    r"(?:list|name|give|suggest|propose|find|tell|brainstorm|think of|come up with|what are)"
    rf"(?: me| us)?(?: the)? {_NUMBER}(?: [\w-]+,?){{0,2}}? [\w-]+s\b",
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
        return f"{self.number} {'sentences' if self.sentences else 'numbered lines'}"


def requested_count(goal: str) -> Count | None:
    """Return how many things a goal asks for; None where it names no number, or where that is unsure."""
    found = _FORM.search(goal) or _LIST.match(goal)
    if found is None:
        return None
    form = found.groupdict().get("form", "")
    return Count(_NUMBERS[found["number"].lower()], sentences=form.lower() == "sentences")


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
            rf"sentence ::= [^\n.!?0-9] ([^\n.!?] | [.!?] [a-z0-9]){{1,{chars}}} [.!?]",
        )
    )
