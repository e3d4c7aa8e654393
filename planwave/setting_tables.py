"""The tables of ``planwave.toml`` that have a name each, such as ``[secrets.NAME]``."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    field_validator,
    model_validator,
)

_SERVICE: Final = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:(?P<port>\d{1,5}))?")
_HOST: Final = re.compile(r"(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?|\[[0-9a-f:.]+\]")
_MAX_PORT: Final = 65_535
_STRAY_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ROOT_PATH: Final = re.compile(r"(/[A-Za-z0-9._~-]+)*")
_SERVICE_PATHS: Final = ("/api/", "/v1/", "/hooks/", "/links/", "/ws/", "/assets/")
"""Beginnings of addresses of the service itself, which a path prefix would be mistaken for."""
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LOADER_VARIABLES: Final = frozenset(
    {"BASH_ENV", "ENV", "IFS", "NODE_OPTIONS", "PATH", "SHELLOPTS"}
)
_LOADER_PREFIXES: Final = ("LD_", "DYLD_", "PYTHON", "PERL5", "RUBY")
"""Environment variables that make programs load other code."""


USUAL_VARIABLES: Final = (
    "HOME", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR",
    "TZ", "USER", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
)  # fmt: skip
"""Variables of planwave's own environment that every program gets."""


def child_environment(*names: str, prefixes: tuple[str, ...] = ()) -> dict[str, str]:
    """Return the usual variables, those of other names, and all whose names begin with a prefix."""
    all_names = {*USUAL_VARIABLES, *names}
    return {
        name: value
        for name, value in os.environ.items()
        if name in all_names or (prefixes and name.startswith(prefixes))
    }


StructuredOutput = Literal["schema", "json", "tool", "none"]
SystemRole = Literal["system", "developer", "user"]
MaxTokensField = Literal["max_tokens", "max_completion_tokens"]
UsageCounting = Literal["so_far", "total"]
ToolSchemaDialect = Literal["json-schema", "openai", "anthropic", "gemini"]
ReasonForEnd = Literal["stop", "length", "tool_calls", "content_filter", "refusal", "error"]
_FOR_CHAT: Final = (
    "parallel_tool_calls", "stream_usage", "max_tokens_field",
)  # fmt: skip
"""Entries that mean something in OpenAI's chat protocol only."""


class ProviderSettings(BaseModel):
    """One ``[providers.NAME]`` table: an endpoint that speaks the OpenAI chat protocol.

    From ``structured_output`` on it says what the endpoint takes. What is not set is learned from what
    the endpoint refuses, for the model that was called, until the process ends.
    """

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    kind: Literal["openai", "anthropic", "openai-compatible"] = "openai-compatible"
    """The protocol of the endpoint, or the provider it replaces."""
    base_url: str | None = None
    """The URL of the endpoint, up to and including ``/v1``."""
    api_key_env: str | None = None
    """The environment variable that holds its key; None for an endpoint without keys."""
    models: list[str] = Field(default_factory=list[str])
    """The only models to offer, the default first; an empty list allows any name."""
    max_concurrency: int = Field(default=16, ge=1, le=1_000)
    """Calls at the same time."""
    requests_per_minute: int | None = Field(default=None, ge=1)
    """Calls per minute; None sets no limit here."""
    structured_output: StructuredOutput | None = None
    """How JSON is requested: by a ``schema``, by JSON mode (``json``) or words (``none``) with the schema in
    the prompt, or by a ``tool``."""
    tools_beside_schema: bool | None = None
    """Whether a request may have tools and a JSON schema, or JSON mode; else JSON is given in a tool."""
    parallel_tool_calls: bool | None = None
    """Whether one reply may call several tools."""
    system_role: SystemRole | None = None
    """The role of the system prompt; with ``user`` it is the beginning of the first turn of the user."""
    repeated_roles: bool | None = None
    """Whether two turns of the user may follow each other; else they are sent as one."""
    stream_usage: bool | None = None
    """Whether it takes ``stream_options``; else it reports no tokens, and they are estimated."""
    max_tokens_field: MaxTokensField | None = None
    """What it calls the limit of tokens of a reply."""
    temperature: bool | None = None
    """Whether it takes a temperature; else none is sent."""
    reasoning_effort: bool | None = None
    """Whether it takes a reasoning effort; else none is sent."""
    required_tool_choice: bool | None = None
    """Whether a reply can be required to call a tool; else the model may also write text."""
    tool_schema: ToolSchemaDialect | None = None
    """Whose rules the JSON schemas of tools keep to."""
    begins_in_reasoning: bool | None = None
    """Whether its replies begin with reasoning that no tag opens, as the tag stands in the prompt, and ``</think>`` ends."""
    finish_reasons: dict[str, ReasonForEnd] | None = None
    """Words of its own for the end of a reply, and what they mean; those of the known APIs need no entry."""
    usage: UsageCounting | None = None
    """What the counts of tokens in a stream are: those ``so_far`` (the largest counts), or in ``total`` (the last)."""
    prompt_cache: bool | None = None
    """Whether it keeps the beginnings of prompts in a cache; by default those of kinds ``anthropic`` (where what repeats is
    marked) and ``openai`` do. False sends no marks, and lets no call wait for the first of its step."""
    context_window: int | None = Field(default=None, ge=256)
    """Tokens of prompt and reply together; a reply is limited to what the prompt leaves."""

    @model_validator(mode="after")
    def _check_protocol(self) -> ProviderSettings:
        """Refuse entries that the protocol has no use for."""
        foreign = [name for name in _FOR_CHAT if getattr(self, name) is not None]
        if self.kind == "anthropic" and foreign:
            raise ValueError(f"{foreign[0]} is not for an endpoint of kind anthropic")
        if self.kind == "anthropic" and self.structured_output == "json":
            raise ValueError(
                "an endpoint of kind anthropic has no JSON mode: write schema, tool or none"
            )
        return self


class McpServerSettings(BaseModel):
    """One ``[mcp.NAME]`` table: a server of tools for agents, either a program or at a URL."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    command: str | None = None
    """The program to start: a name that is found on ``PATH``, or an absolute path."""
    args: list[str] = Field(default_factory=list[str])
    """Its arguments, one text each; no shell reads them."""
    env: dict[str, SecretStr] = Field(default_factory=dict[str, SecretStr])
    """Environment variables for it. Besides these it gets ``HOME``, ``PATH``, the language and the like."""
    pass_env: list[str] = Field(default_factory=list[str])
    """Variables of planwave's own environment that it gets too, by name."""
    cwd: Path | None = None
    """Its working directory, an absolute path; None for the directory of the file that has this table."""
    url: str | None = None
    """In place of ``command``: the address of a server that speaks streamable HTTP."""
    header_env: dict[str, str] = Field(default_factory=dict[str, str])
    """Headers of requests to it: the name of each, and the environment variable with its value."""
    description: str | None = Field(default=None, min_length=1, max_length=500)
    """What its tools are for, in a sentence. The planner offers servers that have one to its model, whose plans
    may link them to agents."""
    approval: Literal["never", "always", "write"] | None = None
    """Which calls a person approves, whatever a graph says: ``write`` is all that do not only read. The stricter of this and
    what the node, the tool and the agent say holds; None leaves it to them."""
    read_tools: list[str] = Field(default_factory=list[str])
    """Its tools that only read, by their names on the server."""
    trust_hints: bool = False
    """Whether to believe what the server says of its tools: that one only reads, or may be called twice."""

    @property
    def kind(self) -> Literal["stdio", "http"]:
        """How it is reached."""
        return "stdio" if self.url is None else "http"

    @model_validator(mode="after")
    def _check(self) -> McpServerSettings:
        """Refuse a table that has no server, two, or parts of the other kind."""
        if (self.command is None) == (self.url is None):
            raise ValueError("write either command (a program to start) or url, and not both")
        other = ("header_env",) if self.url is None else ("args", "env", "pass_env", "cwd")
        if foreign := [name for name in other if getattr(self, name)]:
            raise ValueError(f"{foreign[0]} is not for a server with {self._address_field}")
        return self

    @property
    def _address_field(self) -> str:
        return "a command" if self.url is None else "a url"

    @field_validator("command")
    @classmethod
    def _check_command(cls, written: str | None) -> str | None:
        if written is None or (os.path.isabs(written) and os.path.exists(written)):
            return written
        if not written.strip() or any(char.isspace() for char in written):
            raise ValueError("name a program only; its arguments go to args, one text each")
        if "/" in written and not os.path.isabs(written):
            raise ValueError("write a name that is found on PATH, or an absolute path")
        return written

    @field_validator("cwd")
    @classmethod
    def _check_directory(cls, written: Path | None) -> Path | None:
        if written is not None and not written.is_absolute():
            raise ValueError("write an absolute path")
        return written

    @field_validator("env", "pass_env")
    @classmethod
    def _check_variables(cls, written: Any) -> Any:
        for name in written:
            if not _VARIABLE.fullmatch(name):
                raise ValueError(f"{name!r} is not the name of an environment variable")
            if name.upper() in _LOADER_VARIABLES or name.upper().startswith(_LOADER_PREFIXES):
                raise ValueError(
                    f"the variable {name} decides which code a program loads, and cannot be set here; "
                    "start a script of your own that sets it"
                )
        return written


class TemporalSettings(BaseModel):
    """The Temporal service that carries executions: the table ``[temporal]``."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    address: str = Field(default="127.0.0.1:7233", pattern=r"^[^\s/:]+:\d{1,5}$")
    """Its ``host:port``."""
    namespace: str = Field(default="default", min_length=1, max_length=200)
    """The namespace of the workflows, which has to exist."""
    task_queue: str = Field(default="planwave", min_length=1, max_length=200)
    """The task queue of the workers. Processes of one database name the same one."""
    tls: bool = False
    """Whether the connection is encrypted; so it is with any of ``ca_file``, ``cert_file`` and ``api_key_env``."""
    ca_file: Path | None = None
    """The certificates that sign that of the server, PEM; None for those of the system."""
    cert_file: Path | None = None
    """The certificate of this process, PEM."""
    key_file: Path | None = None
    """The key of ``cert_file``, PEM."""
    api_key_env: str | None = Field(default=None, pattern=_VARIABLE.pattern)
    """The environment variable with the API key."""
    lease_s: float = Field(default=2.0, ge=2.0, le=60.0)
    """A worker that does not say within this time that it works loses its executions to others."""

    @model_validator(mode="after")
    def _check(self) -> TemporalSettings:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("cert_file and key_file belong together")
        return self


def parse_trace_url(written: str) -> str:
    """Return the address of a page of traces, which has ``{trace_id}`` and no other braces.

    Raises:
        ValueError: It is something else.
    """
    address = written.replace("{trace_id}", "")
    is_url = re.fullmatch(r"https?://[^\s/?#{}][^\s{}]*", address, re.IGNORECASE)
    if is_url is None or address == written:
        raise ValueError(
            f"{written!r} is no address of a trace: write one of http or https with {{trace_id}}, "
            "such as https://jaeger.example/trace/{trace_id}"
        )
    return written


def parse_root_path(written: str) -> str:
    """Return a path prefix without a slash at its end; empty for none.

    Raises:
        ValueError: It is not a path, or the service has addresses that begin with it.
    """
    path = written.rstrip("/")
    if _ROOT_PATH.fullmatch(path) is None:
        raise ValueError(
            "write a path such as /planwave: letters, digits and . _ ~ - between slashes"
        )
    for own in _SERVICE_PATHS:
        if f"{path}/".startswith(own):
            raise ValueError(
                f"addresses of the service itself begin with {own}; choose another prefix"
            )
    return path


_USUAL_PORTS: Final = {"http": 80, "https": 443}


def parse_public_url(written: str) -> str:
    """Return the address of a service, without a slash at its end and without the usual port of its scheme.

    Raises:
        ValueError: It is none of http or https, or has more than a host, a port and a path.
    """
    url = written.strip().rstrip("/")
    parts = urlsplit(url)
    has_more = parts.query or parts.fragment or "@" in parts.netloc
    if parts.scheme not in _USUAL_PORTS or not parts.hostname or has_more or " " in url:
        raise ValueError("write an address such as https://planwave.example.com")
    host, port = parts.netloc.rstrip(":"), parts.port  # raises for a port that no address has
    if port == _USUAL_PORTS[parts.scheme]:
        host = host.rpartition(":")[0]  # as browsers write it in Host and Origin
    return parts._replace(netloc=host).geturl()


def check_database_url(url: str) -> None:
    """Check the form of the URL of a database; the message does not show it, for it may have a password.

    Raises:
        ValueError: It is none of a database of PostgreSQL.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("postgresql", "postgres") or not parts.path.strip("/"):
        raise ValueError("write postgresql://user:password@host:port/database")
    has_unescaped = "@" in parts.path or parts.netloc.count("@") > 1
    if has_unescaped or _STRAY_PERCENT.search(url) is not None:
        raise ValueError("write / in a password as %2F, @ as %40 and % as %25")


def parse_database_url(written: SecretStr | None) -> SecretStr | None:
    """Return the URL of a database.

    Raises:
        ValueError: See ``check_database_url``.
    """
    if written is not None:
        check_database_url(written.get_secret_value())
    return written


def database_name(url: str) -> str:
    """Return a database for people, without user and password."""
    parts = urlsplit(url)
    return f"PostgreSQL database {parts.path.strip('/')} on {parts.hostname or 'the local socket'}"


def parse_service(written: str) -> str:
    """Return ``host`` or ``host:port`` in lower case.

    Raises:
        ValueError: It is neither.
    """
    service = written.strip().lower()
    match = _SERVICE.fullmatch(service)
    if match is None or not 0 < int(match["port"] or 1) <= _MAX_PORT:
        raise ValueError(f"{written!r} is no service: write host or host:port, as in wiki.internal")
    return service


def parse_host(written: str) -> str:
    """Return the name of a host, or ``*.`` and a name, in lower case.

    Raises:
        ValueError: It is neither.
    """
    host = written.strip().lower()
    if _HOST.fullmatch(host) is None:
        raise ValueError(
            f"{written!r} is no host: write a name without a port, as in example.com or *.example.com"
        )
    return host


SecretName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")]
"""The name of a secret, as graphs write it in braces."""


class SecretSettings(BaseModel):
    """One ``[secrets.NAME]`` table: a value that graphs name and never see."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    env: str
    """The environment variable that holds the value."""
    hosts: list[Annotated[str, AfterValidator(parse_service)]] = Field(default_factory=list[str])
    """The services that it may be sent to: ``host`` (over https) or ``host:port``; an empty list for a
    secret that only proves who sends a webhook. Notifications of flows are signed with it at these services only."""


NotifiedEvent = Literal["completed", "failed", "cancelled", "waiting"]
ENDS: Final[tuple[NotifiedEvent, ...]] = ("completed", "failed", "cancelled")


class NotificationSettings(BaseModel):
    """One ``[notifications.NAME]`` table: a URL that is notified of all executions."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    url: str = Field(min_length=1, max_length=2_000)
    """The address that messages are sent to; private ones need ``allowed_outbound``."""
    secrets: list[SecretName] = Field(min_length=1, max_length=5)
    """The secrets that sign them, by name: one, or the old and the new one while one is replaced."""
    events: list[NotifiedEvent] = Field(default=[*ENDS], min_length=1)
    """What it is notified of: ``completed``, ``failed``, ``cancelled``, and ``waiting`` for each request to a person."""
