"""All settings and limits in one place.

Order of precedence: environment (``PLANWAVE_*``, limits ``PLANWAVE_LIMIT_*``) over
``planwave.toml`` over the defaults written here. Defaults and hard caps of the limits come from the
comparison with n8n, Dify, Temporal and others kept beside the design.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from planwave.errors import InputError


class _EnvironmentFirst(BaseSettings):
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


class Limits(_EnvironmentFirst):
    """Limits enforced by the service; each field's ``le`` is its hard cap."""

    model_config = SettingsConfigDict(
        env_prefix="PLANWAVE_LIMIT_", extra="forbid", env_ignore_empty=True
    )

    goal_chars: int = Field(default=32_000, ge=1, le=200_000)
    plan_bytes: int = Field(default=256 * 1024, ge=1, le=1024 * 1024)
    plan_nodes: int = Field(default=50, ge=1, le=200)
    nodes: int = Field(default=200, ge=1, le=1_000)
    edges: int = Field(default=1_000, ge=0, le=10_000)
    depth: int = Field(default=100, ge=1, le=500)
    json_depth: int = Field(default=32, ge=4, le=64)
    string_bytes: int = Field(default=64 * 1024, ge=1, le=1024 * 1024)
    parallel_nodes: int = Field(default=64, ge=1, le=1_000)
    node_timeout_s: float = Field(default=600, gt=0, le=86_400)
    run_timeout_s: float = Field(default=3_600, gt=0, le=7 * 86_400)
    node_result_bytes: int = Field(default=1024 * 1024, ge=1, le=32 * 1024 * 1024)
    """A result above it is kept whole, as a file under ``artifacts/`` of the storage directory."""
    events: int = Field(default=50_000, ge=10, le=500_000)
    template_bytes: int = Field(default=64 * 1024, ge=1, le=1024 * 1024)
    template_output_bytes: int = Field(default=1024 * 1024, ge=1, le=8 * 1024 * 1024)
    template_wall_s: float = Field(default=2, gt=0, le=10)
    template_memory_bytes: int = Field(default=256 * 1024 * 1024, ge=64 * 1024 * 1024, le=1024**3)
    call_attempts: int = Field(default=4, ge=1, le=10)
    retry_after_s: float = Field(default=60, ge=0, le=600)
    first_byte_s: float = Field(default=60, gt=0, le=900)
    chunk_gap_s: float = Field(default=30, gt=0, le=900)
    call_s: float = Field(default=300, gt=0, le=900)


class ProviderSettings(BaseModel):
    """One ``[providers.NAME]`` table: an endpoint that speaks the OpenAI chat protocol."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["openai", "anthropic", "openai-compatible"] = "openai-compatible"
    base_url: str | None = None
    api_key_env: str | None = None
    models: list[str] = Field(default_factory=list[str])
    max_concurrency: int = Field(default=16, ge=1, le=1_000)
    requests_per_minute: int | None = Field(default=None, ge=1)


class Settings(_EnvironmentFirst):
    """Everything an operator can set."""

    model_config = SettingsConfigDict(env_prefix="PLANWAVE_", extra="forbid", env_ignore_empty=True)

    storage_dir: Path = Path("storage")
    provider: str | None = None
    model: str | None = None
    local_model: str = "qwen2.5-coder-1.5b"
    model_dir: Path = Path("~/.cache/planwave/models")
    local_threads: int | None = Field(default=None, ge=1, le=256)
    openai_api_key: SecretStr | None = Field(default=None, validation_alias="OPENAI_API_KEY")
    openai_base_url: str | None = Field(default=None, validation_alias="OPENAI_BASE_URL")
    anthropic_api_key: SecretStr | None = Field(default=None, validation_alias="ANTHROPIC_API_KEY")
    anthropic_base_url: str | None = Field(default=None, validation_alias="ANTHROPIC_BASE_URL")
    providers: dict[str, ProviderSettings] = Field(default_factory=dict[str, ProviderSettings])
    limits: Limits = Field(default_factory=Limits)


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
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "settings"
        raise InputError(
            f"setting {where}: {first['msg']}", hint=f"look in {file} and PLANWAVE_* variables"
        ) from error
