"""Secrets of the operator: graphs name them, and their values go into requests to certain services only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from pydantic import SecretStr

from planwave.redaction import Redactor

if TYPE_CHECKING:
    from planwave.settings import McpServerSettings, Settings

_HTTPS_PORT: Final = 443
_LEAST_CHARS: Final = 8
"""Shorter secrets are withheld from the responses to requests with them, not from everything."""
_LEAST_KEY_CHARS: Final = 16
"""Shorter keys, as ``ollama`` for a server without keys, are words that texts hold by chance."""
_NAMES_SECRET: Final = re.compile(
    r"key|token|secret|passw|pwd|auth|cred|cookie|private|signature|dsn|connection", re.IGNORECASE
)
_RANDOM: Final = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[^\s/]*")
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
        authority = f"[{host}]" if ":" in host else host
        port = parts.port or (_HTTPS_PORT if is_https else 80)
        if f"{authority}:{port}" in self.hosts:
            return True
        return is_https and port == _HTTPS_PORT and authority in self.hosts


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
    return _NAMED.sub(lambda match: secrets[match[1]].value.get_secret_value(), text)


def redactor_of(secrets: Iterable[Secret]) -> Redactor:
    """Return what withholds secrets from the responses of services that got them."""
    return Redactor({each.name: each.value.get_secret_value() for each in secrets})


def open_redactor(settings: Settings, environment: Mapping[str, str]) -> Redactor:
    """Return what withholds every secret that the operator has set up, wherever it comes from."""
    named = {name: each.value for name, each in read_secrets(settings, environment).items()}
    for name, server in settings.mcp.items():
        for variable, value in server_secrets(server, environment).items():
            named[f"{name}.{variable}"] = SecretStr(value)
    keys = {
        "openai_api_key": settings.openai_api_key,
        "anthropic_api_key": settings.anthropic_api_key,
        "token": settings.token,
    }
    for name, provider in settings.providers.items():
        value = environment.get(provider.api_key_env or "", "")
        keys[f"{name}.api_key"] = SecretStr(value)
    for name, key in keys.items():
        if key is not None and len(key.get_secret_value()) >= _LEAST_KEY_CHARS:
            named[name] = key
    return Redactor(
        {
            name: value.get_secret_value()
            for name, value in named.items()
            if len(value.get_secret_value()) >= _LEAST_CHARS
        }
    )


def server_secrets(server: McpServerSettings, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the values for an MCP server that look like secrets, by variable or header."""
    values = {name: value.get_secret_value() for name, value in server.env.items()}
    values |= {name: environment.get(name, "") for name in server.pass_env}
    values |= {header: environment.get(name, "") for header, name in server.header_env.items()}
    return {
        name: value
        for name, value in values.items()
        if name in server.header_env or _NAMES_SECRET.search(name) or _looks_random(value)
    }


def _looks_random(value: str) -> bool:
    """Return whether a value is a long word of letters and digits, such as a key."""
    return len(value) >= _LEAST_KEY_CHARS and _RANDOM.fullmatch(value) is not None
