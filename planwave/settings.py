"""All settings and limits in one place.

Order of precedence: environment (``PLANWAVE_*``, limits ``PLANWAVE_LIMIT_*``) over
``planwave.toml`` over the defaults written here. Defaults and hard caps of the limits come from the
comparison with n8n, Dify, Temporal and others kept beside the design.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from planwave.errors import InputError
from planwave.validation import describe_error


class EnvFirstSettings(BaseSettings):
    """Settings whose environment beats what is passed in (which comes from the TOML file)."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return env_settings, init_settings


class Limits(EnvFirstSettings):
    """Limits enforced by the service; each field's ``le`` is its hard cap, its docstring says of what.

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
    queued_executions: int = Field(default=1_000, ge=0, le=100_000)
    """Executions waiting for their start."""
    drain_s: float = Field(default=25, ge=0, le=3_600)
    """How long running nodes may go on once the service is told to stop."""
    watcher_events: int = Field(default=1_000, ge=10, le=100_000)
    """Events a watcher over the network may fall behind before it is dropped with its cursor."""
    watcher_bytes: int = Field(default=1024 * 1024, ge=1024, le=16 * 1024 * 1024)
    """The same, as JSON."""
    body_bytes: int = Field(default=1024 * 1024, ge=1024, le=16 * 1024 * 1024)
    """The body of an HTTP request."""
    body_read_s: float = Field(default=30, gt=0, le=600)
    """How long the body of a request may take to arrive."""
    header_bytes: int = Field(default=32 * 1024, ge=1024, le=256 * 1024)
    """The head of an HTTP request."""
    requests_per_s: float = Field(default=20, gt=0, le=100_000)
    """Requests of one principal, after a burst of ``requests_burst``."""
    requests_burst: int = Field(default=100, ge=1, le=1_000_000)
    """Requests of one principal at once."""
    executions_per_minute: int = Field(default=60, ge=1, le=1_000_000)
    """Executions one principal makes."""
    page_items: int = Field(default=200, ge=1, le=1_000)
    """Items on one page of a list."""
    idempotency_key_chars: int = Field(default=255, ge=1, le=255)
    """An ``Idempotency-Key``."""
    idempotency_hours: float = Field(default=24, gt=0, le=168)
    """How long an answer is kept for its ``Idempotency-Key``."""
    socket_message_bytes: int = Field(default=64 * 1024, ge=16, le=1024 * 1024)
    """A message a WebSocket client sends."""
    socket_frame_bytes: int = Field(default=256 * 1024, ge=1024, le=1024 * 1024)
    """A message a WebSocket client is sent; longer ones are sent in parts."""
    socket_messages_per_s: float = Field(default=20, gt=0, le=1_000)
    """Messages of a WebSocket client, after a burst of ``socket_messages_burst``."""
    socket_messages_burst: int = Field(default=40, ge=1, le=10_000)
    """Messages of a WebSocket client at once."""
    socket_connections: int = Field(default=200, ge=1, le=100_000)
    """WebSockets of one principal."""
    socket_ping_s: float = Field(default=20, gt=0, le=600)
    """Between two pings on a WebSocket; who does not answer is dropped."""
    goal_chars: int = Field(default=32_000, ge=1, le=200_000)
    """A goal."""
    plan_bytes: int = Field(default=256 * 1024, ge=1, le=1024 * 1024)
    """A graph document, and a model's reply that holds a plan."""
    plan_nodes: int = Field(default=50, ge=1, le=200)
    """Nodes of a plan that a model writes."""
    nodes: int = Field(default=200, ge=1, le=1_000)
    """Nodes of a graph."""
    edges: int = Field(default=1_000, ge=0, le=10_000)
    """Edges of a graph."""
    depth: int = Field(default=100, ge=1, le=500)
    """Nodes on the longest path through a graph."""
    json_depth: int = Field(default=32, ge=4, le=64)
    """Levels of nesting in JSON that comes in."""
    string_bytes: int = Field(default=64 * 1024, ge=1, le=1024 * 1024)
    """One text in a graph."""
    parallel_nodes: int = Field(default=64, ge=1, le=1_000)
    """Nodes of one execution working at the same time."""
    steps: int = Field(default=10_000, ge=1, le=100_000)
    """Starts of nodes of one execution, those in loops and retries included."""
    nested_depth: int = Field(default=5, ge=1, le=10)
    """Graphs inside nodes, inside nodes of these, and so on."""
    loop_items: int = Field(default=1_000, ge=1, le=10_000)
    """Items that one node runs a graph for."""
    loop_rounds: int = Field(default=100, ge=1, le=10_000)
    """Times that one node repeats a graph."""
    recoveries: int = Field(default=5, ge=1, le=1_000)
    """Times an execution is taken up after its process ended, without any progress in between."""
    recoveries_per_s: float = Field(default=20, gt=0, le=10_000)
    """Executions taken up a second when the service starts."""
    node_timeout_s: float = Field(default=600, gt=0, le=86_400)
    """An attempt of a node without a ``timeoutS`` of its own."""
    policy_timeout_s: float = Field(default=86_400, gt=0, le=86_400)
    """What a node's policy may ask for as ``timeoutS``."""
    policy_attempts: int = Field(default=10, ge=1, le=10)
    """What a node's policy may ask for as ``retry.attempts``."""
    policy_backoff_s: float = Field(default=600, ge=0, le=600)
    """What a node's policy may ask for as ``retry.backoffS``."""
    run_timeout_s: float = Field(default=3_600, gt=0, le=7 * 86_400)
    """A whole execution."""
    node_result_bytes: int = Field(default=1024 * 1024, ge=1, le=32 * 1024 * 1024)
    """A value above it is kept whole, as a file under ``artifacts/`` of the storage directory."""
    largest_result_bytes: int = Field(default=32 * 1024 * 1024, ge=1, le=32 * 1024 * 1024)
    """What one node gives; more fails the node."""
    run_state_bytes: int = Field(default=32 * 1024 * 1024, ge=1, le=256 * 1024 * 1024)
    """What all nodes of an execution give together; more fails the execution."""
    events: int = Field(default=50_000, ge=10, le=500_000)
    """Stored events of an execution, its last one apart."""
    template_bytes: int = Field(default=64 * 1024, ge=1, le=1024 * 1024)
    """A template."""
    template_output_bytes: int = Field(default=1024 * 1024, ge=1, le=8 * 1024 * 1024)
    """What a template gives."""
    template_wall_s: float = Field(default=2, gt=0, le=10)
    """How long a template may take."""
    template_memory_bytes: int = Field(default=256 * 1024 * 1024, ge=64 * 1024 * 1024, le=1024**3)
    """Memory of the process that resolves templates."""
    call_attempts: int = Field(default=4, ge=1, le=10)
    """Attempts at one model call."""
    retry_after_s: float = Field(default=60, ge=0, le=600)
    """The longest wait a provider may ask for between two attempts."""
    provider_failures: int = Field(default=5, ge=1, le=1_000)
    """Failed attempts in a row after which a provider is left alone, but for a probe now and then."""
    provider_wait_s: float = Field(default=60, ge=0, le=3_600)
    """How long a model call waits for a provider that is left alone."""
    first_byte_s: float = Field(default=60, gt=0, le=900)
    """From a model call to the first piece of its reply."""
    chunk_gap_s: float = Field(default=30, gt=0, le=900)
    """Between two pieces of a model's reply."""
    call_s: float = Field(default=300, gt=0, le=900)
    """One attempt at a model call."""
    call_tokens: int = Field(default=200_000, ge=1, le=1_000_000)
    """The ``maxTokens`` a node may ask for."""


class ProviderSettings(BaseModel):
    """One ``[providers.NAME]`` table: an endpoint that speaks the OpenAI chat protocol."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    kind: Literal["openai", "anthropic", "openai-compatible"] = "openai-compatible"
    """Which protocol it speaks, or which provider it stands in for."""
    base_url: str | None = None
    """Where it is, up to and including ``/v1``."""
    api_key_env: str | None = None
    """The environment variable its key is in; None for an endpoint that takes none."""
    models: list[str] = Field(default_factory=list[str])
    """The models to offer, the default first, and no others; empty takes any name."""
    max_concurrency: int = Field(default=16, ge=1, le=1_000)
    """Calls at the same time."""
    requests_per_minute: int | None = Field(default=None, ge=1)
    """Calls a minute; None leaves that to the endpoint."""


class Settings(EnvFirstSettings):
    """Everything an operator can set."""

    model_config = SettingsConfigDict(
        env_prefix="PLANWAVE_",
        extra="forbid",
        env_ignore_empty=True,
        use_attribute_docstrings=True,
    )

    storage_dir: Path = Path("storage")
    """Where everything is kept; one process at a time writes there."""
    host: str = "127.0.0.1"
    """Where ``planwave serve`` listens; any address but loopback needs a ``token``."""
    port: int = Field(default=8000, ge=0, le=65_535)
    """The port it listens on; 0 takes any that is free."""
    token: SecretStr | None = None
    """What requests carry as ``Authorization: Bearer …``; None is only for loopback."""
    allowed_hosts: list[str] = Field(default_factory=list[str])
    """``Host`` headers accepted besides the address listened on."""
    allowed_origins: list[str] = Field(default_factory=list[str])
    """``Origin`` headers accepted besides the service's own."""
    api_docs: bool = True
    """Whether ``/docs`` and ``/openapi.json`` are served; behind the token where there is one."""
    log_format: Literal["text", "json"] = "text"
    """How the log of ``planwave serve`` is written to standard error, a line a record."""
    retention_days: int | None = Field(default=None, ge=1, le=36_500)
    """Ended executions older than this are removed; None keeps everything."""
    provider: str | None = None
    """The default provider; None takes OpenAI, Anthropic, ``local``, the first that is there."""
    model: str | None = None
    """The default model of the default provider."""
    allowed_node_types: list[str] | None = None
    """The only node types that plans written by models may use; None allows every type that is offered to models."""
    allowed_effects: list[Literal["none", "read", "write", "once"]] | None = None
    """The only side effects that node types of such plans may have; None takes all."""
    local_model: str = "qwen2.5-coder-1.5b"
    """The embedded model: one that ``planwave doctor`` lists, or the path of a GGUF file."""
    model_dir: Path = Path("~/.cache/planwave/models")
    """Where embedded models are kept."""
    local_threads: int | None = Field(default=None, ge=1, le=256)
    """Threads of the embedded model; None takes what is idle when it loads."""
    openai_api_key: SecretStr | None = Field(default=None, validation_alias="OPENAI_API_KEY")
    """The key for OpenAI, which makes it available."""
    openai_base_url: str | None = Field(default=None, validation_alias="OPENAI_BASE_URL")
    """Where OpenAI is reached, where that is not its usual address."""
    anthropic_api_key: SecretStr | None = Field(default=None, validation_alias="ANTHROPIC_API_KEY")
    """The key for Anthropic, which makes it available."""
    anthropic_base_url: str | None = Field(default=None, validation_alias="ANTHROPIC_BASE_URL")
    """Where Anthropic is reached, where that is not its usual address."""
    providers: dict[str, ProviderSettings] = Field(default_factory=dict[str, ProviderSettings])
    """Other endpoints by name: a table ``[providers.NAME]`` each."""
    limits: Limits = Field(default_factory=Limits)
    """The table ``[limits]``."""

    @field_validator("storage_dir")
    @classmethod
    def _expand_home(cls, written: Path) -> Path:
        """Take ``~`` for the home directory, as shells do where they see it."""
        return Path(os.path.expanduser(written))


def load_settings(path: Path | None = None) -> Settings:
    """Read settings from ``planwave.toml`` (here, or at ``path``) and the environment.

    Raises:
        InputError: The file or a value in it is unusable; the message names file and field.
    """
    file = path or Path("planwave.toml")
    table: dict[str, Any] = {}
    if path is not None and not file.is_file():
        raise InputError(f"settings file {str(file)!r} does not exist")
    if file.is_file():
        try:
            table = tomllib.loads(file.read_text("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
            raise InputError(f"{file} cannot be read: {error}") from error
    try:
        limits = Limits(**table.pop("limits", {}))
        return Settings(**table, limits=limits)
    except ValidationError as error:
        raise _invalid_setting(error, file) from error


def _invalid_setting(error: ValidationError, file: Path) -> InputError:
    """Name the setting that is wrong, as the file and the environment call it."""
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"])
    table, variable = "", f"PLANWAVE_{name.upper()}"
    if error.title == Limits.__name__:
        table, variable = "limits.", f"PLANWAVE_LIMIT_{name.upper()}"
    is_field = name in Limits.model_fields if table else name in Settings.model_fields
    hint = f"look in {file}" + (f", and at {variable} in the environment" if is_field else "")
    return InputError(describe_error(f"setting {table}{name}", first), hint=hint)
