"""Spellings in which services show a secret: each test of what is withheld walks this table."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import quote, quote_plus

CANARY: Final = "canary/AbC+def=ghi<9>&x'y"


def each_char(spell: Callable[[int], str]) -> Callable[[str], str]:
    return lambda text: "".join(spell(ord(char)) for char in text)


def in_base64(before: bytes = b"", after: bytes = b"") -> Callable[[str], str]:
    return lambda text: base64.b64encode(before + text.encode() + after).decode()


SPELLINGS: Final[Mapping[str, Callable[[str], str]]] = {
    "as it is": str,
    "JSON": lambda text: json.dumps(text)[1:-1],
    "JSON of PHP": lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    "JSON of Go": each_char(lambda c: f"\\u{c:04x}" if chr(c) in "<>&" else chr(c)),
    "JSON of .NET": each_char(lambda c: f"\\u{c:04X}" if chr(c) in "<>&+'\"" else chr(c)),
    "JSON, all escaped": each_char(lambda c: f"\\u{c:04x}"),
    "JSON in JSON": lambda text: json.dumps(json.dumps(text)).replace("/", "\\/"),
    "JavaScript": each_char(lambda c: f"\\x{c:02x}"),
    "braces": each_char(lambda c: f"\\u{{{c:x}}}"),
    "octal": each_char(lambda c: f"\\{c:03o}"),
    "percent": lambda text: quote(text, safe=""),
    "percent, lower case": each_char(lambda c: f"%{c:02x}"),
    "percent, not the slash": quote,
    "percent twice": lambda text: quote(quote(text, safe=""), safe=""),
    "form": quote_plus,
    "HTML": html.escape,
    "HTML twice": lambda text: html.escape(html.escape(text)),
    "HTML, decimal": each_char(lambda c: f"&#{c};"),
    "HTML, hexadecimal": each_char(lambda c: f"&#x{c:X};"),
    "HTML, named": lambda text: text.replace("&", "&amp;").replace("/", "&#47;"),
    "quoted-printable": each_char(lambda c: f"={c:02X}"),
    "Base64": in_base64(),
    "Base64 after one byte": in_base64(b"a", b"end"),
    "Base64 after two bytes": in_base64(b"ab", b"end"),
    "Base64 of Basic": in_base64(b"user:"),
    "Base64 of Bearer": in_base64(b"Bearer ", b"\n"),
    "Base64 for URLs": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "Base64 in lines": lambda text: base64.encodebytes(text.encode() * 4).decode(),
    "Base64 in JSON of PHP": lambda text: in_base64()(text).replace("/", "\\/"),
    "Base64, percent": lambda text: quote(in_base64(b"x:")(text), safe=""),
    "hexadecimal": lambda text: text.encode().hex(),
    "hexadecimal, upper case": lambda text: text.encode().hex().upper(),
    "a line break in it": lambda text: f"{text[:9]}\r\n  {text[9:]}",
    "characters that nobody sees": "\u200b".join,
    "UTF-16 read as UTF-8": lambda text: text.encode("utf-16-le").decode(),
    "JavaScript's escape": each_char(lambda c: f"%u{c:04X}"),
    "quotes of SQL": lambda text: text.replace("'", "''"),
    "quotes of a shell": lambda text: text.replace("'", "'\\''"),
    "Python": lambda text: repr(f'{text}"')[1:-2],
    "colours in it": "\x1b[1;31m".join,
    "hexadecimal with colons": lambda text: text.encode().hex(":"),
    "hexadecimal with blanks": lambda text: text.encode().hex(" "),
    "hexadecimal of C": lambda text: ", ".join(f"0x{byte:02X}" for byte in text.encode()),
    "list of bytes": lambda text: ", ".join(map(str, text.encode())),
    "Base64 twice": lambda text: in_base64()(in_base64(b"a")(text)),
    "Base64 of UTF-16": lambda text: base64.b64encode(text.encode("utf-16-le")).decode(),
    "Base64 of percent": lambda text: in_base64()(quote(text, safe="")),
    "Base64 of JSON": lambda text: in_base64(b'{"a": "', b'"}')(json.dumps(text)[1:-1]),
}


def shows(text: str, secret: str = CANARY) -> list[str]:
    """Return the spellings of a secret that a text holds; of the Base64 ones, what depends on it alone."""
    return [
        name
        for name, spell in SPELLINGS.items()
        if (spell(secret)[4:-6] if "Base64" in name else spell(secret)) in text
    ]
