"""All settings and limits in one place; ``config/files.py`` reads the files that set them.

The environment (``PLANWAVE_*``, limits ``PLANWAVE_LIMIT_*``) has precedence over the files, and these
over the defaults in this module. The defaults and hard caps of the limits follow those of n8n, Dify,
Temporal and others.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PrivateAttr,
    SecretStr,
    field_validator,
)
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from planwave.setting_tables import (
    McpServerSettings,
    NotificationSettings,
    ProviderSettings,
    SecretName,
    SecretSettings,
    TemporalSettings,
    database_name,
    parse_database_url,
    parse_host,
    parse_public_url,
    parse_root_path,
    parse_service,
    parse_trace_url,
)

_PREFIX: Final = "PLANWAVE_"
_TABLE_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
DEBUG_VARIABLE: Final = "PLANWAVE_DEBUG"
"""The environment variable with which the command line shows tracebacks."""
SLOW_CALL_S: Final = 30.0
"""A model call that takes longer is worth a warning: longer than most replies, far below the limits of a call."""
CONFIG_VARIABLE: Final = "PLANWAVE_CONFIG"
"""The environment variable that names a settings file."""
TOKEN_VARIABLE: Final = "PLANWAVE_TOKEN"  # noqa: S105 - its name
"""The environment variable with the token: of a service for itself, and of a client for a service."""
URL_VARIABLE: Final = "PLANWAVE_URL"
"""The environment variable with the address of the service that the command line talks to."""


@dataclass(frozen=True, slots=True)
class Narrows:
    """Marks a setting that counts in a ``planwave.toml`` that nobody has trusted, where it is stricter.

    Settings without this mark do not count there at all. Limits have it by default: the lower value.

    Attributes:
        stricter: From the value that holds without the file, and the one in it, the stricter of both.
        counts: What counts, in the words of the tables in docs/operations.md.
    """

    stricter: Callable[[Any, Any], Any]
    counts: str


def _in_both(held: list[str] | None, written: list[str]) -> list[str]:
    return written if held is None else [each for each in written if each in held]


def _hosts_in_both(held: list[str] | None, written: list[str]) -> list[str]:
    """Return the hosts that both lists allow; either may have ``*.`` and a name."""
    if held is None:
        return written
    hosts = [each for each in written if _allows_host(held, each)]
    return hosts + [each for each in held if each not in hosts and _allows_host(written, each)]


def _allows_host(allowed: Iterable[str], host: str) -> bool:
    plain = host.rstrip(".")
    return any(
        plain == each.rstrip(".")
        or (each.startswith("*.") and plain.endswith(each[1:].rstrip(".")))
        for each in allowed
    )


_FEWER: Final = Narrows(_in_both, "fewer")
_FEWER_HOSTS: Final = Narrows(_hosts_in_both, "fewer")
_FORBIDDEN: Final = Narrows(
    lambda held, written: "never" if "never" in (held, written) else written, "`never`"
)
_SWITCHED_ON: Final = Narrows(lambda held, written: held or written, "`true`")
_SWITCHED_OFF: Final = Narrows(lambda held, written: held and written, "`false`")
_LOWER: Final = Narrows(
    lambda held, written: written if held is None else min(held, written), "lower"
)
_HIGHER: Final = Narrows(max, "higher")


def narrows(field: FieldInfo, *, is_limit: bool = False) -> Narrows | None:
    """Return how a setting counts in a file that nobody has trusted; None if it does not."""
    marks = (each for each in field.metadata if isinstance(each, Narrows))
    return next(marks, _LOWER if is_limit else None)


class EnvFirstSettings(BaseSettings):
    """Settings whose environment variables override the arguments (the values of the TOML file)."""

    reads_environment: ClassVar[bool] = True

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (env_settings, init_settings) if cls.reads_environment else (init_settings,)


class Limits(EnvFirstSettings):
    """Limits enforced by the service; each field's ``le`` is its hard cap.

    Names end in their unit: ``_bytes``, ``_chars``, ``_s`` (seconds), ``_hours``, ``_per_s``.
    """

    model_config = SettingsConfigDict(
        env_prefix="PLANWAVE_LIMIT_",
        extra="forbid",
        env_ignore_empty=True,
        use_attribute_docstrings=True,
    )

    concurrent_executions: int = Field(default=50, ge=1, le=1_000)
    """Executions running at the same time; the others wait in a queue."""
    burst_executions: int = Field(default=10, ge=0, le=1_000)
    """Executions running beyond ``concurrent_executions``, each the only one of its principal: a principal
    without a running execution does not wait for those of others."""
    queued_executions: int = Field(default=1_000, ge=0, le=100_000)
    """Executions waiting to start, or to go on."""
    waiting_executions: int = Field(default=100, ge=1, le=10_000)
    """Executions of one access token that have not ended and do not run: queued ones, paused ones, those
    that wait for an answer or a time, and those not started. The operator has no such limit."""
    forks: int = Field(default=100, ge=0, le=1_000)
    """Forks and retries of one execution."""
    drain_s: float = Field(default=25, ge=0, le=3_600)
    """How long running nodes may continue after the service received a signal to stop."""
    triggers: int = Field(default=1_000, ge=0, le=10_000)
    """Triggers of flows."""
    chats: int = Field(default=10_000, ge=0, le=1_000_000)
    """Chats."""
    token_chats: int = Field(default=100, ge=0, le=10_000)
    """Chats that one access token has opened."""
    chat_messages: int = Field(default=2_000, ge=2, le=20_000)
    """Messages of one chat, on all its branches."""
    schedule_gap_s: Annotated[float, _HIGHER] = Field(default=60, ge=10, le=86_400)
    """The smallest time between two executions of a schedule."""
    schedule_catch_up_s: float = Field(default=600, ge=0, le=86_400)
    """How late a schedule still starts an execution, for the last of the times that it missed."""
    webhook_bytes: int = Field(default=1024 * 1024, ge=16, le=10 * 1024 * 1024)
    """The body of a request to a webhook."""
    unauthenticated_bytes: int = Field(default=16 * 1024 * 1024, ge=1024, le=1024**3)
    """Bodies of webhooks and logins in memory whose senders are not known yet; one body always fits."""
    webhook_unauthenticated_bytes: int = Field(default=4 * 1024 * 1024, ge=1024, le=1024**3)
    """Those of one webhook."""
    session_bytes: int = Field(default=4 * 1024, ge=64, le=64 * 1024)
    """The body of a login, ``POST /api/session``."""
    webhook_wait_s: float = Field(default=60, gt=0, le=600)
    """How long a webhook keeps a sender waiting for an answer; then the execution's id is the answer."""
    notification_targets: int = Field(default=100, ge=0, le=10_000)
    """URLs that flows notify of their executions."""
    notification_hours: float = Field(default=24, gt=0, le=168)
    """How long an undelivered notification is sent again."""
    notification_s: float = Field(default=15, gt=0, le=120)
    """One attempt to send a notification."""
    notification_bytes: int = Field(default=256 * 1024, ge=0, le=4 * 1024 * 1024)
    """The results in a notification, as JSON; larger ones are left out."""
    links: int = Field(default=20, ge=0, le=1_000)
    """Links to one execution that people created and that still open something."""
    answer_link_hours: float = Field(default=24, gt=0, le=168)
    """How long a link answers a request at most; never after the deadline of the request."""
    dead_letter_days: Annotated[float, _HIGHER] = Field(default=30, gt=0, le=3_650)
    """How long undelivered notifications are listed."""
    heavy_responses: int = Field(default=4, ge=1, le=64)
    """Documents, results, lists and other large responses to one access token at once; more wait for some seconds, and are refused then."""
    operator_heavy_responses: int = Field(default=16, ge=1, le=64)
    """Such responses to the operator at once."""
    sending_bytes: int = Field(default=128 * 1024 * 1024, ge=1024 * 1024, le=16 * 1024**3)
    """Bytes of large responses in memory, of all clients together, until they are sent; one client has at
    most half of them. A single response may be larger. Stored documents are sent from their files."""
    subscriber_events: int = Field(default=1_000, ge=10, le=100_000)
    """Events a subscriber may fall behind before it is disconnected with its cursor."""
    subscriber_bytes: int = Field(default=1024 * 1024, ge=1024, le=16 * 1024 * 1024)
    """Bytes of JSON a subscriber may fall behind before it is disconnected."""
    body_bytes: int = Field(default=1024 * 1024, ge=1024, le=16 * 1024 * 1024)
    """The body of an HTTP request."""
    body_read_s: float = Field(default=30, gt=0, le=600)
    """How long the body of a request may take to arrive."""
    header_bytes: int = Field(default=32 * 1024, ge=1024, le=256 * 1024)
    """The head of an HTTP request."""
    requests_per_s: float = Field(default=20, gt=0, le=100_000)
    """Requests of one principal per second, after a burst of ``requests_burst``."""
    requests_burst: int = Field(default=100, ge=1, le=1_000_000)
    """Requests of one principal at once."""
    executions_per_minute: int = Field(default=60, ge=1, le=1_000_000)
    """Executions one principal creates per minute."""
    page_items: int = Field(default=200, ge=1, le=1_000)
    """Items on one page of a list."""
    idempotency_key_chars: int = Field(default=255, ge=1, le=255)
    """An ``Idempotency-Key``."""
    idempotency_hours: Annotated[float, _HIGHER] = Field(default=24, gt=0, le=168)
    """How long a response is stored for its ``Idempotency-Key``."""
    socket_message_bytes: int = Field(default=64 * 1024, ge=16, le=1024 * 1024)
    """A message a WebSocket client sends."""
    socket_frame_bytes: int = Field(default=256 * 1024, ge=1024, le=1024 * 1024)
    """A message sent to a WebSocket client; longer ones are sent in parts."""
    socket_messages_per_s: float = Field(default=20, gt=0, le=1_000)
    """Messages of a WebSocket client per second, after a burst of ``socket_messages_burst``."""
    socket_messages_burst: int = Field(default=40, ge=1, le=10_000)
    """Messages of a WebSocket client at once."""
    socket_connections: int = Field(default=200, ge=1, le=100_000)
    """WebSockets of one principal."""
    socket_ping_s: float = Field(default=20, gt=0, le=600)
    """Between two pings on a WebSocket; a client that does not respond is disconnected."""
    goal_chars: int = Field(default=32_000, ge=1, le=200_000)
    """A goal."""
    plan_bytes: int = Field(default=256 * 1024, ge=1, le=1024 * 1024)
    """A graph document, and a model's reply that holds a plan."""
    plan_nodes: int = Field(default=50, ge=1, le=200)
    """Nodes of a plan that a model writes."""
    plan_operations: int = Field(default=500, ge=1, le=10_000)
    """Operations in one change of a plan."""
    plan_revisions: int = Field(default=1_000, ge=1, le=100_000)
    """Revisions of a plan that are kept, above it the oldest goes that nothing refers to; and changes of one execution."""
    nodes: int = Field(default=200, ge=1, le=1_000)
    """Nodes of a graph."""
    edges: int = Field(default=1_000, ge=0, le=10_000)
    """Edges of a graph."""
    depth: int = Field(default=100, ge=1, le=500)
    """Nodes on the longest path through a graph."""
    json_depth: int = Field(default=32, ge=4, le=64)
    """Levels of nesting in incoming JSON."""
    string_bytes: int = Field(default=64 * 1024, ge=1, le=1024 * 1024)
    """One text in a graph."""
    parallel_nodes: int = Field(default=64, ge=1, le=1_000)
    """Nodes of one execution running at the same time."""
    steps: int = Field(default=10_000, ge=1, le=100_000)
    """Node starts in one execution, including loops and retries."""
    nested_depth: int = Field(default=5, ge=1, le=10)
    """Levels of graphs nested in nodes."""
    loop_items: int = Field(default=1_000, ge=1, le=10_000)
    """Items that one node runs a graph for."""
    loop_rounds: int = Field(default=100, ge=1, le=10_000)
    """Times that one node repeats a graph."""
    recoveries: int = Field(default=5, ge=1, le=1_000)
    """Times an execution is resumed after its process ended, without progress in between."""
    recoveries_per_s: float = Field(default=20, gt=0, le=10_000)
    """Executions resumed per second when the service starts."""
    node_timeout_s: float = Field(default=600, gt=0, le=86_400)
    """An attempt of a node without a ``timeoutS`` of its own."""
    policy_timeout_s: float = Field(default=86_400, gt=0, le=86_400)
    """The largest ``timeoutS`` of a node's policy."""
    policy_attempts: int = Field(default=10, ge=1, le=10)
    """The largest ``retry.attempts`` of a node's policy."""
    policy_backoff_s: float = Field(default=600, ge=0, le=600)
    """The largest ``retry.backoffS`` of a node's policy."""
    run_timeout_s: float = Field(default=3_600, gt=0, le=7 * 86_400)
    """A whole execution."""
    budget_tokens: int = Field(default=200_000, ge=1, le=1_000_000_000)
    """Tokens that an execution may use, its nested runs included, before a person raises its budget; a request may set another number."""
    budget_usd: float = Field(default=5, gt=0, le=1_000_000)
    """US dollars that an execution may use, as far as prices are known; else as ``budget_tokens``."""
    node_result_bytes: int = Field(default=1024 * 1024, ge=1, le=32 * 1024 * 1024)
    """A larger value is stored as a file under ``artifacts/`` of the storage directory."""
    largest_result_bytes: int = Field(default=32 * 1024 * 1024, ge=1, le=32 * 1024 * 1024)
    """The result of one node; a larger one fails the node."""
    event_bytes: int = Field(default=8 * 1024 * 1024, ge=1, le=32 * 1024 * 1024)
    """An event or a request of a node; a larger one fails the node."""
    run_state_bytes: int = Field(default=32 * 1024 * 1024, ge=1, le=256 * 1024 * 1024)
    """The results, events and requests of all nodes of an execution, and its nested graphs, together; more fails the execution."""
    events: int = Field(default=50_000, ge=10, le=500_000)
    """Stored events of an execution, not counting the last one."""
    template_bytes: int = Field(default=64 * 1024, ge=1, le=1024 * 1024)
    """A template."""
    template_output_bytes: int = Field(default=1024 * 1024, ge=1, le=8 * 1024 * 1024)
    """The output of a template."""
    template_wall_s: float = Field(default=2, gt=0, le=10)
    """Time to render a template."""
    template_memory_bytes: int = Field(default=256 * 1024 * 1024, ge=64 * 1024 * 1024, le=1024**3)
    """Memory of the process that resolves templates."""
    call_attempts: int = Field(default=4, ge=1, le=10)
    """Attempts at one model call."""
    retry_after_s: float = Field(default=60, ge=0, le=600)
    """The longest wait a provider may ask for between two attempts."""
    provider_failures: int = Field(default=5, ge=1, le=1_000)
    """Failed attempts in a row after which a provider gets no calls but occasional probes."""
    provider_wait_s: float = Field(default=60, ge=0, le=3_600)
    """How long a model call waits for a provider that gets no calls because of failures."""
    first_byte_s: float = Field(default=60, gt=0, le=900)
    """From a model call to the first part of its reply."""
    chunk_gap_s: float = Field(default=30, gt=0, le=900)
    """Between two parts of a model's reply."""
    call_s: float = Field(default=300, gt=0, le=900)
    """One attempt at a model call."""
    fetch_s: float = Field(default=30, gt=0, le=120)
    """A request of a node to a URL, with its redirects and its response."""
    fetch_connect_s: float = Field(default=5, gt=0, le=120)
    """The connection of such a request: to resolve the name, and to connect."""
    fetch_redirects: int = Field(default=5, ge=0, le=10)
    """Redirects that such a request follows."""
    fetch_bytes: int = Field(default=2 * 1024 * 1024, ge=1, le=10 * 1024 * 1024)
    """The body of its response, decoded."""
    fetch_header_bytes: int = Field(default=32 * 1024, ge=1024, le=64 * 1024)
    """The headers of its response."""
    mcp_connect_s: float = Field(default=10, gt=0, le=120)
    """The start of an MCP server, up to the list of its tools."""
    mcp_call_s: float = Field(default=60, gt=0, le=3_600)
    """One call of a tool of an MCP server."""
    mcp_result_bytes: int = Field(default=1024 * 1024, ge=1, le=16 * 1024 * 1024)
    """The result of such a call, as JSON; more is cut."""
    mcp_tools: int = Field(default=200, ge=1, le=2_000)
    """Tools of one MCP server."""
    agent_tools: int = Field(default=200, ge=0, le=1_000)
    """Tools that are linked to one node."""
    tool_result_bytes: int = Field(default=1024 * 1024, ge=1, le=16 * 1024 * 1024)
    """The result of a call of a tool, as JSON, as the model gets it."""
    tool_rounds: int = Field(default=20, ge=1, le=100)
    """Replies of its model in one attempt of an agent, the last one included."""
    subagent_depth: int = Field(default=2, ge=0, le=4)
    """Agents above one that is called as a tool."""
    subagent_calls: int = Field(default=10, ge=0, le=50)
    """Calls of other agents in one attempt of an agent."""
    approval_timeout_s: float = Field(default=7 * 86_400, gt=0, le=90 * 86_400)
    """How long an approval without a time limit of its own waits; then it is rejected."""
    call_tokens: int = Field(default=200_000, ge=1, le=1_000_000)
    """The largest ``maxTokens`` of a node."""


def _check_table_names(written: Mapping[str, Any]) -> Mapping[str, Any]:
    for name in written:
        if not _TABLE_NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name: use letters, digits, _ and -, at most 40")
    return written


def _parse_list(written: Any) -> Any:
    """Parse a list in an environment variable: names separated by commas, or JSON."""
    if not isinstance(written, str):
        return written
    if written.lstrip().startswith("["):
        try:
            return json.loads(written)
        except ValueError as error:
            raise ValueError("write names separated by commas, or a JSON list") from error
    return [name for part in written.split(",") if (name := part.strip())]


_List = (NoDecode, BeforeValidator(_parse_list))


BUILT_IN_LIMITS: Final = Limits.model_construct()
"""The defaults, whatever the environment says: those of graphs that no service checks."""


LOG_LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR")


def log_levels(text: str) -> dict[str, str]:
    """Return the levels of a text such as ``planwave.provider=DEBUG, WARNING``, by logger.

    Raises:
        ValueError: It has something else; without a logger a level is that of ``planwave``.
    """
    levels: dict[str, str] = {}
    for part in text.split(","):
        logger, _, level = part.strip().rpartition("=")
        if level.upper() not in LOG_LEVELS:
            raise ValueError(f"{level!r} is no level: write one of {', '.join(LOG_LEVELS)}")
        levels[logger or "planwave"] = level.upper()
    return levels


def _checked_levels(text: str) -> str:
    log_levels(text)
    return text


class Settings(EnvFirstSettings):
    """All settings of an operator."""

    model_config = SettingsConfigDict(
        env_prefix="PLANWAVE_",
        extra="forbid",
        env_ignore_empty=True,
        use_attribute_docstrings=True,
    )

    storage_dir: Path = Path("storage")
    """The directory of all stored data; only one process at a time writes to it."""
    database_url: Annotated[SecretStr | None, AfterValidator(parse_database_url)] = None
    """The database of PostgreSQL that keeps all data in place of the storage directory,
    ``postgresql://user:password@host/database``; the directory keeps what belongs to the process."""
    carrier: Literal["local", "temporal"] = "local"
    """What decides which process drives an execution: ``local`` is the process that has it, ``temporal`` one of any number of workers."""
    temporal: TemporalSettings = Field(default_factory=TemporalSettings)
    """The Temporal service of ``carrier = "temporal"``, the table ``[temporal]``."""
    host: str = "127.0.0.1"
    """The address ``planwave serve`` listens on; all but loopback addresses need a ``token``."""
    port: int = Field(default=8000, ge=0, le=65_535)
    """The port ``planwave serve`` and ``planwave worker`` listen on; 0 selects a free port."""
    root_path: Annotated[str, AfterValidator(parse_root_path)] = ""
    """The path prefix that a reverse proxy serves planwave under, such as ``/planwave``."""
    public_url: Annotated[str, AfterValidator(parse_public_url)] | None = None
    """Where people reach the service, such as `https://planwave.example.com`: links begin with it, and notifications of requests have one."""
    token: SecretStr | None = None
    """The token of requests (``Authorization: Bearer …``); None is allowed only on loopback."""
    allowed_hosts: Annotated[list[str], *_List] = Field(default_factory=list[str])
    """``Host`` headers accepted besides the address listened on."""
    allowed_origins: Annotated[list[str], *_List] = Field(default_factory=list[str])
    """``Origin`` headers accepted besides the service's own."""
    allowed_outbound: Annotated[list[Annotated[str, AfterValidator(parse_service)]], *_List] = (
        Field(default_factory=list[str])
    )
    """Services that nodes may send requests to although they have private addresses or other ports
    than 80 and 443: ``host`` (ports 80 and 443) or ``host:port``."""
    outbound_hosts: Annotated[
        list[Annotated[str, AfterValidator(parse_host)]] | None, *_List, _FEWER_HOSTS
    ] = None
    """The only hosts that nodes may send requests to, besides ``allowed_outbound``: ``example.com``, or
    ``*.example.com`` for all hosts below it; None allows every public host."""
    redirect_hosts: Annotated[list[Annotated[str, AfterValidator(parse_host)]], *_List] = Field(
        default_factory=list[str]
    )
    """Hosts that answers to webhooks may redirect to (``location``), besides the service: ``example.com``, or ``*.example.com`` for all hosts below it."""
    providers_fetch_images: bool = False
    """Whether providers get the URLs of images; else planwave fetches the images and sends them."""
    api_docs: Annotated[bool, _SWITCHED_OFF] = True
    """Whether ``/docs`` and ``/openapi.json`` are served, which need the token if one is set, and ``/llms.txt``, the list of the pages of documentation, which does not."""
    log_format: Literal["text", "json"] = "text"
    """The format of the log of ``planwave serve`` on standard error, one line per record."""
    log_level: Annotated[str, AfterValidator(_checked_levels)] = "INFO"
    """The lowest level of that log: ``WARNING``, or by logger, such as ``planwave.provider=DEBUG, WARNING``."""
    log_executions: Literal["all", "failures"] = "all"
    """Whether each execution has lines in that log, or only what goes wrong."""
    log_slow_call_s: float = Field(default=SLOW_CALL_S, gt=0, le=3_600)
    """A model call that takes longer has a warning in that log; others have a line at ``DEBUG``."""
    tracing: bool = False
    """Whether spans are sent to an OpenTelemetry collector; needs ``planwave[otel]``, and the ``OTEL_*`` variables say where it is."""
    tracing_content: Literal["none", "content"] = "none"
    """Whether spans hold prompts, replies, and arguments and results of tools (``content``), without the secrets of the settings."""
    tracing_url_template: Annotated[str, AfterValidator(parse_trace_url)] | None = None
    """The page of a trace, with ``{trace_id}``, such as `https://jaeger.example/trace/{trace_id}`; the page of a run links to it."""
    spend_warn_usd_per_day: float | None = Field(default=None, gt=0, le=1_000_000)
    """US dollars a day, UTC, from which on the log and the page warn; planning counts, and nothing is stopped. None warns never."""
    retention_days: int | None = Field(default=None, ge=1, le=36_500)
    """Finished executions older than this are deleted; None keeps all."""
    audit_log: bool | None = None
    """Whether what people and programs do is logged in `storage/audit/`; None: where the service listens on an address that others reach."""
    node_modules: Annotated[list[str], *_List] = Field(default_factory=list[str])
    """Python modules with node types, from the working directory or the installed environment."""
    provider: str | None = None
    """The default provider; None selects the first available of OpenAI, Anthropic and ``local``."""
    model: str | None = None
    """The default model of the default provider."""
    require_approval: Annotated[bool, _SWITCHED_ON] = False
    """Whether every execution waits for a person to approve its plan, and callers of a flow start approved revisions only; a request cannot switch it off."""
    allowed_node_types: Annotated[list[str] | None, *_List, _FEWER] = None
    """The only node types that plans written by models may use; None allows every type that is offered to models."""
    allowed_effects: Annotated[
        list[Literal["none", "read", "write", "once"]] | None, *_List, _FEWER
    ] = None
    """The only side effects that node types of such plans may have; None allows all."""
    plan_web_search: bool = False
    """Whether agents of such plans may let their provider search the web."""
    ask_questions: bool = False
    """Whether ``planwave plan`` and ``run`` ask on a terminal what a goal leaves open, as with ``--questions``; else the plan
    says what it assumes."""
    examples_from_history: Annotated[bool, _SWITCHED_OFF] = True
    """Whether planners are shown goals and step names of up to two earlier plans that the person who asks ran to their end; embedded models never are."""
    embedded_model: Annotated[Literal["allow", "never"], _FORBIDDEN] = "allow"
    """Whether ``local`` may be used: where no API key is set, it is the default, and states wrong facts more often than large models; ``never`` is an error then, before anything runs."""
    local_model: str = "qwen2.5-coder-1.5b"
    """The embedded model: one that ``planwave doctor`` lists, or the path of a GGUF file."""
    model_dir: Path = Path("~/.cache/planwave/models")
    """The directory of embedded models."""
    local_threads: int | None = Field(default=None, ge=1, le=256)
    """Threads of the embedded model; None uses the CPUs that are idle when it loads."""
    openai_api_key: SecretStr | None = Field(default=None, validation_alias="OPENAI_API_KEY")
    """The key for OpenAI, which makes it available."""
    openai_base_url: str | None = Field(default=None, validation_alias="OPENAI_BASE_URL")
    """The URL of OpenAI, if not its usual one."""
    anthropic_api_key: SecretStr | None = Field(default=None, validation_alias="ANTHROPIC_API_KEY")
    """The key for Anthropic, which makes it available."""
    anthropic_base_url: str | None = Field(default=None, validation_alias="ANTHROPIC_BASE_URL")
    """The URL of Anthropic, if not its usual one."""
    providers: dict[str, ProviderSettings] = Field(default_factory=dict[str, ProviderSettings])
    """Other endpoints by name, one table ``[providers.NAME]`` each."""
    mcp: Annotated[dict[str, McpServerSettings], AfterValidator(_check_table_names)] = Field(
        default_factory=dict[str, McpServerSettings]
    )
    """MCP servers by name, one table ``[mcp.NAME]`` each; graphs name them."""
    secrets: dict[SecretName, SecretSettings] = Field(
        default_factory=dict[SecretName, SecretSettings]
    )
    """Secrets that nodes may name, one table ``[secrets.NAME]`` each."""
    notifications: Annotated[
        dict[str, NotificationSettings], AfterValidator(_check_table_names)
    ] = Field(default_factory=dict[str, NotificationSettings])
    """URLs that are notified of executions, one table ``[notifications.NAME]`` each."""
    unsigned_webhooks: Annotated[bool, _SWITCHED_OFF] = False
    """Whether flows may accept webhooks that nobody signs (``auth: none``)."""
    limits: Limits = Field(default_factory=Limits)
    """The table ``[limits]``."""
    _installed_modules: frozenset[str] = PrivateAttr(default=frozenset())

    @property
    def installed_modules(self) -> frozenset[str]:
        """Those of ``node_modules`` that are never looked for in the working directory."""
        return self._installed_modules

    def with_installed(self, names: Iterable[str]) -> Self:
        """Return the settings with the names of ``installed_modules``."""
        copy = self.model_copy()
        copy._installed_modules = frozenset(names)
        return copy

    @property
    def storage_name(self) -> str:
        """Where data is stored, for people: a directory, or a database without its password."""
        if self.database_url is None:
            return str(self.storage_dir.absolute())
        return database_name(self.database_url.get_secret_value())

    @field_validator("storage_dir")
    @classmethod
    def _expand_home(cls, written: Path) -> Path:
        """Expand ``~`` to the home directory."""
        return Path(os.path.expanduser(written))


def variable_of(model: type[EnvFirstSettings], name: str) -> str:
    """Return the environment variable of a setting."""
    alias = model.model_fields[name].validation_alias
    return (
        alias
        if isinstance(alias, str)
        else f"{model.model_config.get('env_prefix', '')}{name}".upper()
    )


def unknown_variables(names: Iterable[str], settings: Settings) -> dict[str, str | None]:
    """Return the environment variables that look like settings and are none.

    Args:
        names: The names of all environment variables.
        settings: The settings; their ``api_key_env`` may name any variable.

    Returns:
        ``{name: the closest known name, or None}``.
    """
    variables = [DEBUG_VARIABLE, CONFIG_VARIABLE, URL_VARIABLE]
    variables += [*(each.api_key_env or "" for each in settings.providers.values())]
    for server in settings.mcp.values():
        variables += [*server.pass_env, *server.header_env.values()]
    variables += [each.env for each in settings.secrets.values()]
    for model in (Settings, Limits):
        variables += [variable_of(model, name) for name in model.model_fields]
    unknown = sorted(
        name for name in names if name.upper().startswith(_PREFIX) and name.upper() not in variables
    )
    return {name: _closest_variable(name, variables) for name in unknown}


def _closest_variable(name: str, variables: Iterable[str]) -> str | None:
    """Return the known variable closest to a name, apart from the prefix that all have."""
    by_field = {each.removeprefix(_PREFIX): each for each in variables}
    close = get_close_matches(name.upper().removeprefix(_PREFIX), by_field, n=1)
    return by_field[close[0]] if close else None
