"""Secrets withheld from whatever comes from outside, in the spellings in which services show them.

A service that repeats a request shows a secret as it is, escaped for JSON, a URL or HTML, or in Base64
(after ``user:`` too). So texts are searched after their charset and JSON are decoded, and once more
with all escapes undone. A text that holds a secret in a spelling that cannot be cut out is withheld whole.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from html.entities import codepoint2name
from typing import TYPE_CHECKING, Final, NamedTuple, cast
from urllib.parse import quote, unquote

from planwave.jsonio import dumps_exact

if TYPE_CHECKING:
    from planwave.errors import PlanwaveError
    from planwave.graph.model import Json

_LEAST_CHARS: Final = 6
"""Shorter secrets are looked for in their usual escapes only: other spellings occur by chance."""
_COLOUR: Final = r"\x1b\[[0-9;?]*[ -/]*[@-~]"
_UNSEEN: Final = r"[\s\x00-\x1f\x7f\u00ad\u200b-\u200d\u2060\ufeff]"
_GAP: Final = f"(?:{_COLOUR}|{_UNSEEN})"
"""What may stand between the characters of a secret: line breaks, colours, and what nobody sees."""
_COLOURS: Final = re.compile(_COLOUR)
_GAPS: Final = re.compile(f"{_UNSEEN}+")
_ESCAPE: Final = re.compile(
    r"\\+(?:u\{(?P<braced>[0-9a-fA-F]{1,6})\}|u(?P<four>[0-9a-fA-F]{4})|U(?P<eight>[0-9a-fA-F]{8})"
    r"|x(?P<two>[0-9a-fA-F]{2})|(?P<octal>[0-3][0-7]{2})|(?P<char>.))|%u(?P<unit>[0-9a-fA-F]{4})",
    re.DOTALL,
)
_BETWEEN_BYTES: Final = r"(?:0x|[\s:;,-])*"
_QUOTES: Final = re.compile(r"(?:\\*['\"])+")
_QUOTED_PRINTABLE: Final = re.compile(r"(?:=[0-9A-Fa-f]{2})+")
_CONTROLS: Final = frozenset("nrtbfav0")
"""Letters that stand for a control character after a backslash; such characters count as gaps."""
_ROUNDS: Final = 4
"""How often escapes in escapes are undone."""


class Redactor:
    """Withholds secrets.

    Args:
        secrets: The values by name; the name is what is shown.
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        by_length = sorted(secrets.items(), key=lambda item: len(item[1]), reverse=True)
        self._secrets = [_Secret(name, value) for name, value in by_length if value]

    def text(self, text: str) -> str:
        """Return a text with ``[secret NAME]`` in place of each secret, in any spelling."""
        if not self._secrets:
            return text
        for secret in self._secrets:
            text = secret.cut_out(text)
        readings = _readings(text)
        for secret in self._secrets:
            if secret.is_in(readings):
                text = secret.cut_out_spelled(text)
                readings = _readings(text)
                if secret.is_in(readings):
                    return secret.placeholder
        return text

    def value(self, value: Json) -> Json:
        """Return JSON without secrets: in texts, keys and numbers; the same object where there is none."""
        if not self._secrets or value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self.text(value)
        try:
            whole = dumps_exact(value)
        except (TypeError, ValueError, RecursionError):
            return value  # no JSON: who stores it refuses it
        if self.text(whole) == whole:
            return value
        walked = self._walk(value)
        whole = dumps_exact(walked)
        redacted = self.text(whole)  # a list of bytes is found in the whole only
        return walked if redacted == whole else redacted

    def clean(self, error: PlanwaveError) -> None:
        """Take secrets out of an error."""
        error.message = self.text(error.message)
        error.hint = error.hint and self.text(error.hint)
        error.args = (error.message, *error.args[1:])

    def _walk(self, value: Json) -> Json:
        if isinstance(value, list):
            return [self._walk(item) for item in cast("list[Json]", value)]
        if isinstance(value, dict):
            fields = cast("dict[str, Json]", value)
            return {self.text(key): self._walk(item) for key, item in fields.items()}
        if isinstance(value, int | float) and not isinstance(value, bool):
            text = dumps_exact(value)
            redacted = self.text(text)
            return value if redacted == text else redacted
        return self.text(value) if isinstance(value, str) else value


class _Secret:
    """One secret, and how it is looked for."""

    def __init__(self, name: str, value: str) -> None:
        self.placeholder = f"[secret {name}]"
        encoded = value.encode("utf-8", "surrogatepass")
        self._is_long = len(_squeezed(value)) >= _LEAST_CHARS
        self._cores = _base64_cores(encoded) if self._is_long else ()
        self._hex = encoded.hex() if self._is_long else ""
        self._bytes = ",".join(map(str, encoded)) if self._is_long else ""
        in_json = json.dumps(value)[1:-1]
        plain = {value, in_json, in_json.replace("/", "\\/"), quote(value, safe="")}
        self._plain = sorted(plain, key=len, reverse=True)
        inner = [each.encode("utf-8", "surrogatepass") for each in plain - {value}]
        inner += [
            value.encode("utf-16-le", "surrogatepass"),
            *(each.encode() for each in self._cores),
        ]
        more = [core for each in inner for core in _base64_cores(each)] if self._is_long else []
        self._all_cores = tuple(dict.fromkeys((*self._cores, *more)))
        self._forms = [each for each in _undone(value) if len(_squeezed(each)) >= _LEAST_CHARS]
        self._readings = {_squeezed(each) for each in self._forms}
        self._in_quotes = [
            _QUOTES.sub("'", each) for each in self._readings if _QUOTES.search(each)
        ]
        self._in_form = [each.replace("+", "") for each in self._readings if " " in value]

    def cut_out(self, text: str) -> str:
        """Replace the secret as it is, in its usual escapes, in Base64 and in hexadecimal digits."""
        for form in self._plain:
            text = text.replace(form, self.placeholder)
        if self._is_long and any(core in text for core in self._all_cores):
            text = self._base64_pattern.sub(lambda _: self.placeholder, text)
        if self._is_long and self._hex in (lower := text.lower()) and len(lower) == len(text):
            text = re.sub(self._hex, lambda _: self.placeholder, text, flags=re.IGNORECASE)
        return text

    def is_in(self, readings: Iterable[_Reading]) -> bool:
        """Return whether one of the readings of a text holds the secret."""
        return self._is_long and any(self._is_in(each) for each in readings)

    def _is_in(self, reading: _Reading) -> bool:
        text, digits = reading
        if any(each in text for each in (*self._readings, *self._all_cores)):
            return True
        if self._in_quotes and any(each in _QUOTES.sub("'", text) for each in self._in_quotes):
            return True  # a shell and SQL repeat a quote
        if self._in_form and any(each in text.replace("+", "") for each in self._in_form):
            return True  # a form has + for a blank
        return self._hex in digits or self._bytes in text

    def cut_out_spelled(self, text: str) -> str:
        """Replace the secret where single characters of it are escaped, or are apart."""
        return self._spelled_pattern.sub(lambda _: self.placeholder, text)

    @cached_property
    def _base64_pattern(self) -> re.Pattern[str]:
        cores = "|".join(map(re.escape, self._all_cores))
        return re.compile(f"(?:{cores})={{0,2}}")

    @cached_property
    def _spelled_pattern(self) -> re.Pattern[str]:
        forms = [*map(_spelled, (*self._forms, *self._cores, self._hex))]
        digits = [self._hex[at : at + 2] for at in range(0, len(self._hex), 2)]
        forms.append(f"(?i:(?:0x)?{_BETWEEN_BYTES.join(digits)})")
        forms.append(r",\s*".join(self._bytes.split(",")))
        return re.compile("|".join(forms))


def _base64_cores(value: bytes) -> tuple[str, ...]:
    """Return the characters of Base64 that depend on a value alone, for its three places in a group.

    The characters at its ends, which depend on what is beside it, hold four bits of it at most.
    """
    cores: dict[str, None] = {}
    for offset in range(3):
        encoded = base64.b64encode(bytes(offset) + value).decode("ascii")
        core = encoded[(offset * 8 + 5) // 6 : (offset + len(value)) * 8 // 6]
        cores[core] = None
        cores[core.translate(str.maketrans("+/", "-_"))] = None
    return tuple(cores)


class _Reading(NamedTuple):
    """A text without gaps, and its digits without what stands between the bytes of a dump."""

    text: str
    digits: str


def _readings(text: str) -> list[_Reading]:
    """Return a text without gaps: as it is, and after each round of undoing escapes."""
    readings: list[_Reading] = []
    for each in dict.fromkeys(map(_squeezed, _undone(text))):
        digits = each.lower().replace("0x", "")
        for between in ":;,-":
            digits = digits.replace(between, "")
        readings.append(_Reading(each, digits))
    return readings


def _squeezed(text: str) -> str:
    return _GAPS.sub("", _COLOURS.sub("", text) if "\x1b" in text else text)


def _undone(text: str) -> list[str]:
    """Return a text, and what undoing its escapes gives, again and again."""
    texts: list[str] = []
    printable = _QUOTED_PRINTABLE.sub(_printable, text) if "=" in text else text
    for begin in dict.fromkeys((text, printable)):
        current = begin
        for _ in range(_ROUNDS):
            texts.append(current)
            following = _unescaped(current)
            if following == current:
                break
            current = following
    return texts


def _printable(match: re.Match[str]) -> str:
    return bytes.fromhex(match[0].replace("=", "")).decode("utf-8", "replace")


def _unescaped(text: str) -> str:
    """Undo one level of the escapes of JSON, URLs and HTML."""
    if "\\" in text or "%u" in text:
        text = _ESCAPE.sub(_character, text)
        if any("\ud800" <= char <= "\udfff" for char in text):
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if "%" in text:
        text = unquote(text, errors="replace")
    return html.unescape(text) if "&" in text else text


def _character(match: re.Match[str]) -> str:
    if char := match["char"]:
        return " " if char in _CONTROLS else char
    if octal := match["octal"]:
        return chr(int(octal, 8))
    code = int(
        match["braced"] or match["four"] or match["eight"] or match["two"] or match["unit"], 16
    )
    return chr(code) if code <= 0x10FFFF else ""


def _spelled(form: str) -> str:
    """Return a pattern of a text whose characters are each written in any of its spellings."""
    return f"{_GAP}*".join(map(_spellings, form))


def _spellings(char: str) -> str:
    code = ord(char)
    # What comes in pairs in UTF-16 is escaped as two characters.
    units = char.encode("utf-16-be", "surrogatepass")
    pairs = [units[at : at + 2].hex() for at in range(0, len(units), 2)]
    utf8 = char.encode("utf-8", "surrogatepass")
    choices = [
        "".join(rf"(?:\\+|%(?:25)*)u(?i:{pair})" for pair in pairs),
        rf"\\+(?:u\{{0*(?i:{code:x})\}}|U0*(?i:{code:x}))",
        "".join(f"%(?:25)*(?i:{byte:02x})" for byte in utf8),
        "".join(f"=(?i:{byte:02x})" for byte in utf8),
        f"&(?:amp;)*#(?:0*{code}|[xX]0*(?i:{code:x}));?",
    ]
    if code <= 0xFF:
        choices.append(rf"\\+(?:x(?i:{code:02x})|{code:03o})")
    if name := codepoint2name.get(code) or {"'": "apos"}.get(char):
        choices.append(f"&(?:amp;)*{name};?")
    if char in "'\"":
        choices.append(_QUOTES.pattern)
    choices.append(r"\\*" + re.escape(char))  # last: a backslash is also the begin of an escape
    if char == " ":
        choices += [r"\+", _GAP]
    return f"(?:{'|'.join(choices)})"


NOTHING_SECRET: Final = Redactor({})
