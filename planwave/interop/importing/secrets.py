"""Secrets in files of other programs: taken out before a converter reads the file.

A value counts as a secret by its key (``api_key``, ``Authorization``), by a mark beside it (``password: true``,
``value_type: secret``), or by its form (``Bearer …``, ``sk-…``, a key in PEM). References such as ``{{env.KEY}}``
are not secrets. Converters see a ``Withheld`` in its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, cast

from planwave.graph.json_values import pointer_part

MARK: Final = "[secret removed]"
"""What stands in place of a secret inside a longer text."""

_NAME_CHARS: Final = 60
_KEYS: Final = frozenset(
    {
        "apikey", "secret", "secretkey", "clientsecret", "appsecret", "password", "passwd", "pwd",
        "passphrase", "token", "accesstoken", "authtoken", "refreshtoken", "bearertoken", "apitoken",
        "idtoken", "sessiontoken", "authorization", "proxyauthorization", "privatekey", "secretaccesskey",
        "accesskey", "accesskeyid", "xapikey", "cookie", "setcookie", "credential", "connectionstring",
        "webhooksecret", "signingsecret", "xauthtoken", "basicauth", "pass", "jwt", "bearer", "xauth",
        "credentials", "authheader", "authkey", "sessioncookie", "secretvalue", "tokenvalue",
    }
)  # fmt: skip
_KEY_ENDS: Final = (
    "apikey",
    "password",
    "secret",
    "accesstoken",
    "authtoken",
    "apitoken",
    "privatekey",
    "token",
    "passwd",
    "passphrase",
    "encryptionkey",
    "signingkey",
    "subscriptionkey",
    "accountkey",
    "accesskey",
    "secretkey",
    "licensekey",
)
_NO_TOKENS: Final = (
    "max", "min", "next", "page", "prev", "stop", "eos", "bos", "pad", "unk", "sep", "continuation",
    "per", "input", "output", "completion", "prompt", "total",
)  # fmt: skip
"""What a name begins with that ends in ``token`` and holds none: parts of texts, and places in lists."""
_LINES: Final = frozenset({"headers", "params", "query", "cookies", "env"})
"""Keys of texts that may be lines of ``name: value``."""
_FORMS: Final = re.compile(
    r"""
    (?P<bearer>\b(?:Bearer|Basic)\s+)(?P<credential>(?=\S*[0-9=+/_-]|\S{20})[A-Za-z0-9+/=_.~-]{8,})
    | (?P<key>\b(?:sk|pk|rk|gsk|xai|hf|ghp|gho|ghs|ghu|glpat|xox[abprs]|pat|npm|shpat|AKIA|AIza|ya29|eyJ)
        (?:[-_]|(?<=AKIA)|(?<=AIza)|(?<=eyJ)|(?<=ya29)\.)[A-Za-z0-9_.-]{12,})
    | (?P<pem>-----BEGIN[A-Z ]*PRIVATE[ ]KEY-----.*?(?:-----END[A-Z ]*PRIVATE[ ]KEY-----|\Z))
    | (?P<userinfo>(?<=://)[^/\s:@'"]+:[^/\s@'"]+(?=@))
    | (?P<login>(?<=\s-u\s)["']?[^\s:'"{}$]+:[^\s'"{}$]{4,})
    | (?P<webhook>(?<=hooks\.slack\.com/services/)[\w/]{20,} | (?<=/api/webhooks/)\d+/[\w-]{20,}
        | (?<=api\.telegram\.org/bot)\d+:[\w-]{20,})
    | (?P<signature>(?<=[?&])(?:sig|signature|X-(?:Amz|Goog)-Signature)=[^\s&"'{}]{8,})
    """,
    re.VERBOSE | re.DOTALL,
)
_ASSIGNED: Final = re.compile(
    r"""(?<![A-Za-z0-9_-])(?P<name>[A-Za-z_][A-Za-z0-9_-]{1,40})\\?["']?\]?\s{0,4}[:=]>?\s{0,4}\\?["']?"""
)
_VALUE: Final = re.compile(
    r"""(?P<scheme>(?:Bearer|Basic)\s+)?(?P<bare>[^\s"'\\,;&{}<>()\[\]]{6,})"""
)
"""``name: value`` and ``name=value`` in texts: headers as lines, queries of URLs, JSON in a text."""
_NO_VALUES: Final = (MARK, "$", "{{")
_LIKELY: Final = re.compile(r"[0-9_+/=-]|\S{16}")
"""A text after ``password:`` that is no word of a sentence."""
_REFERENCE: Final = re.compile(r"\{\{[^{}]*\}\}|\$\{[^{}]*\}|\A\$[A-Z_]+\Z|\A=")
_REST: Final = re.compile(r"\S{8}")
"""What is too long beside a reference to be the name of a scheme."""
_MARKS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "password": lambda value: value is True,
    "isSecret": lambda value: value is True,
    "secret": lambda value: value is True,
    "value_type": lambda value: value == "secret",
}
"""Fields beside a ``value`` that say that it is a secret."""


class Withheld(str):
    """The place of a secret that was taken out; converters see it in place of the value.

    Its text is ``MARK``. A converter that knows what the value is for names a secret of the operator
    instead; a node that still has one when it is finished becomes a placeholder.

    Attributes:
        scheme: What stood before the secret in the value, such as ``Bearer ``; "" for a bare one.
    """

    __slots__ = ("scheme",)

    scheme: str

    def __new__(cls, scheme: str = "") -> Withheld:
        made = super().__new__(cls, MARK)
        made.scheme = scheme
        return made


class Removed(NamedTuple):
    """A secret that was taken out.

    Attributes:
        pointer: Where it stood.
        name: Its key, or its kind.
        value: The text, which is shown nowhere.
    """

    pointer: str
    name: str
    value: str


def secret_name(names: dict[str, str], pointer: str, label: str, header: str) -> str:
    """Return the name of a secret of the operator for a header of a step; no other step has it.

    Args:
        names: The pointer of the step of each name so far; the new one is added.
        pointer: Where the step stands.
        label: What the step is called.
        header: The header that the secret is sent in.
    """
    words = re.sub(r"[^A-Za-z0-9]+", "_", f"{label}_{header}").strip("_").lower()
    stem = (words if words[:1].isalpha() else f"secret_{words}".rstrip("_"))[:_NAME_CHARS]
    name, number = stem, 1
    while names.setdefault(name, pointer) != pointer:
        number += 1
        name = f"{stem}_{number}"
    return name


def is_secret_key(name: str) -> bool:
    """Return whether what a key holds is a secret, by its name alone."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    if plain.endswith("token") and plain.startswith(_NO_TOKENS):
        return False
    return plain in _KEYS or plain.endswith(_KEY_ENDS)


def without_secrets(value: Any, pointer: str = "") -> tuple[Any, list[Removed]]:
    """Return a copy of a document with ``Withheld`` in place of each secret, and what was taken out.

    Args:
        value: Parsed JSON, at most 64 levels deep.
        pointer: JSON pointer of the value.
    """
    removed: list[Removed] = []
    return _Walk(removed).value(value, pointer), removed


def holds_withheld(value: object) -> bool:
    """Return whether JSON would send the mark of a secret; graphs inside it are left out."""
    if isinstance(value, str):
        return isinstance(value, Withheld) or MARK in value
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        is_graph = fields.keys() == {"nodes", "edges"}  # its nodes are looked at one by one
        return not is_graph and any(map(holds_withheld, fields.values()))
    return isinstance(value, list) and any(map(holds_withheld, cast("list[object]", value)))


def plain(value: Any) -> Any:
    """Return a copy of a document in which what was withheld is plain text."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in cast("dict[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in cast("Iterable[Any]", value)]
    return MARK if isinstance(value, Withheld) else value


class _Walk:
    def __init__(self, removed: list[Removed]) -> None:
        self._removed = removed
        self._are_secret: dict[str, bool] = {}
        self._clean_keys: set[str] = set()

    def _is_secret(self, name: str) -> bool:
        """Return the same as ``is_secret_key``, found out once: a file repeats its keys."""
        found = self._are_secret.get(name)
        if found is None:
            found = self._are_secret[name] = is_secret_key(name)
        return found

    def value(self, value: Any, pointer: str) -> Any:
        if isinstance(value, dict):
            return self._fields(cast("dict[str, Any]", value), pointer)
        if isinstance(value, list):
            items = cast("list[Any]", value)
            return [self.value(item, f"{pointer}/{i}") for i, item in enumerate(items)]
        return self._text(value, pointer) if isinstance(value, str) else value

    def _fields(self, fields: dict[str, Any], pointer: str) -> dict[str, Any]:
        named = next(
            (fields[k] for k in ("name", "key", "label") if isinstance(fields.get(k), str)), ""
        )
        is_marked = self._is_secret(named) or any(
            name in fields and says(fields[name]) for name, says in _MARKS.items()
        )
        copy: dict[str, Any] = {}
        for written, value in fields.items():
            name = self._key(written, pointer, copy)
            inside = f"{pointer}/{pointer_part(name)}"
            if self._is_secret(name) and isinstance(value, dict):
                copy[name] = self._described(cast("dict[str, Any]", value), inside, name)
            elif self._is_secret(name) or (is_marked and name == "value"):
                copy[name] = self._withheld(
                    value, inside, _Walk([])._text(named, "") if name == "value" else name
                )
            elif name in _LINES and isinstance(value, str):
                copy[name] = self._lines(value, inside)
            else:
                copy[name] = self.value(value, inside)
        return copy

    def _key(self, name: str, pointer: str, taken: Mapping[str, Any]) -> str:
        """Return the name of a field without the secrets in it, so that no pointer shows them."""
        if name in self._clean_keys:
            return name
        clean = plain = str.__str__(self._text(name, f"{pointer}/{MARK}"))
        number = 1
        while clean != name and clean in taken:
            number += 1
            clean = f"{plain} {number}"
        if clean == name:
            self._clean_keys.add(name)
        return clean

    def _lines(self, text: str, pointer: str) -> str:
        """Take secrets out of lines of ``name: value``, of which the name says what the value is."""
        made: list[str] = []
        for line in text.split("\n"):
            name, colon, value = line.partition(":")
            given = value.strip()
            if colon and is_secret_key(name) and not text.lstrip().startswith(("{", "[")):
                place = self._withheld(given, pointer, name.strip())
                if isinstance(place, Withheld):
                    space = value[: len(value) - len(value.lstrip())]
                    line = f"{name}:{space}{place.scheme}{MARK}"
            made.append(line)
        return self._text("\n".join(made), pointer)

    def _described(self, fields: dict[str, Any], pointer: str, name: str) -> dict[str, Any]:
        """Copy the description of a secret field, such as a schema; its ``value`` is the secret."""
        copy = {k: v for k, v in self._fields(fields, pointer).items() if k != "value"}
        if "value" in fields:
            copy["value"] = self._withheld(fields["value"], f"{pointer}/value", name)
        return copy

    def _withheld(self, value: Any, pointer: str, name: str) -> Any:
        """Withhold what is a secret by its key: every text and number that is no reference."""
        if isinstance(value, dict | list):
            return self.value(value, pointer)
        if isinstance(value, bool) or value is None or value == "":
            return value
        text = str(value)
        beside = _REFERENCE.sub("", text)
        if text == MARK or (beside != text and not _REST.search(beside)):
            return value
        match = re.match(r"(?:Bearer|Basic|Token|ApiKey)\s+", text)
        scheme = match[0] if match else ""
        self._removed.append(Removed(pointer, name, text.removeprefix(scheme)))
        return Withheld(scheme)

    def _text(self, text: str, pointer: str) -> str:
        """Take secrets out of a text that is none by its key."""
        if len(text) < 8:
            return text

        def by_form(match: re.Match[str]) -> str:
            kind = match.lastgroup or "secret"
            secret = match["credential"] or match[0]
            self._removed.append(
                Removed(pointer, "bearer" if kind == "credential" else kind, secret)
            )
            return f"{match['bearer'] or ''}{MARK}"

        cleaned = _FORMS.sub(by_form, self._without_assigned(text, pointer))
        return Withheld() if cleaned == MARK else cleaned

    def _without_assigned(self, text: str, pointer: str) -> str:
        """Take out what is assigned to the key of a secret: headers as lines, queries, JSON in a text."""
        parts: list[str] = []
        copied = start = 0
        while (match := _ASSIGNED.search(text, start)) is not None:
            start = match.end("name")
            at = match.end()
            if not is_secret_key(match["name"]) or text.startswith(_NO_VALUES, at):
                continue
            value = _VALUE.match(text, at)  # not in the search: it may be long, and is read once
            if value is None or not (value["scheme"] or _LIKELY.search(value[0])):
                continue
            self._removed.append(Removed(pointer, match["name"], value["bare"]))
            parts += [text[copied:at], value["scheme"] or "", MARK]
            copied = start = value.end()
        return "".join([*parts, text[copied:]])
