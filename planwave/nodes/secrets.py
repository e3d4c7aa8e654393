"""Secrets of the operator: graphs name them, and their values go into requests to certain services only."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

from pydantic import SecretStr

if TYPE_CHECKING:
    from planwave.settings import Settings

_HTTPS_PORT: Final = 443
_NAMED: Final = re.compile(r"\{([A-Za-z][A-Za-z0-9_-]*)\}")


@dataclass(frozen=True, slots=True)
class Secret:
    """One secret.

    Attributes:
        name: Its name, the only thing that graphs, events and messages hold.
        value: Its value.
        hosts: The services that it may be sent to, as ``host`` (over https) or ``host:port``.
    """

    name: str
    value: SecretStr
    hosts: tuple[str, ...]

    def may_be_sent_to(self, url: str) -> bool:
        """Return whether the operator allows to send it to a URL."""
        parts = urlsplit(url)
        host, is_https = parts.hostname or "", parts.scheme.lower() == "https"
        shown = f"[{host}]" if ":" in host else host
        port = parts.port or (_HTTPS_PORT if is_https else 80)
        if f"{shown}:{port}" in self.hosts:
            return True
        return is_https and port == _HTTPS_PORT and shown in self.hosts


def read_secrets(settings: Settings, environment: Mapping[str, str]) -> dict[str, Secret]:
    """Return the secrets of the operator that have a value, by name."""
    return {
        name: Secret(name, SecretStr(value), tuple(each.hosts))
        for name, each in settings.secrets.items()
        if (value := environment.get(each.env, "").strip())
    }


def secret_names(text: str) -> list[str]:
    """Return the names of the secrets in a text such as ``Bearer {crm}``."""
    return list(dict.fromkeys(_NAMED.findall(text)))


def with_secrets(text: str, secrets: Mapping[str, Secret]) -> str:
    """Return a text with the values of the secrets that it names; each must be known."""
    return _NAMED.sub(lambda found: secrets[found[1]].value.get_secret_value(), text)


def redact(text: str, secrets: Iterable[Secret]) -> str:
    """Return a text with the names of secrets in place of their values."""
    for secret in secrets:
        value = secret.value.get_secret_value()
        for form in {value, json.dumps(value)[1:-1], quote(value, safe="")}:
            text = text.replace(form, f"[secret {secret.name}]")
    return text


def redact_bytes(body: bytes, secrets: Iterable[Secret]) -> bytes:
    """Return bytes with the names of secrets in place of their values."""
    return redact(body.decode("latin-1"), secrets).encode("latin-1")
