"""What model servers take and say: one table by kind of provider and API.

The operator may set each entry in ``[providers.NAME]``; what a server refuses is learned, for the model
that was called, while the process runs (``refusals.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

from planwave.providers.protocols import Api, ProviderKind
from planwave.setting_tables import (
    MaxTokensField,
    ProviderSettings,
    ReasonForEnd,
    StructuredOutput,
    SystemRole,
    ToolSchemaDialect,
    UsageCounting,
)

_MAX_LEARNED: Final = 1_000
_MINIMUM_TOKENS: Final = (
    (re.compile(r"opus-4-[5-9]|haiku-4-[5-9]"), 4_096),
    (re.compile(r"sonnet-4-[6-9]|haiku"), 2_048),
)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a server takes of a model, and what it says.

    The fields are those of ``[providers.NAME]``, see ``ProviderSettings``; but ``keeps_system_place``.
    Where ``prompt_cache`` is not set, it is that of the kind.

    Attributes:
        keeps_system_place: Whether a system message may stand between the turns of a conversation. Where
            not, it is sent in its place as a turn of the user.
    """

    structured_output: StructuredOutput = "schema"
    tools_beside_schema: bool = True
    parallel_tool_calls: bool = True
    system_role: SystemRole = "system"
    keeps_system_place: bool = True
    repeated_roles: bool = True
    stream_usage: bool = True
    max_tokens_field: MaxTokensField = "max_tokens"
    temperature: bool = True
    reasoning_effort: bool = True
    required_tool_choice: bool = True
    tool_schema: ToolSchemaDialect = "openai"
    begins_in_reasoning: bool = False
    finish_reasons: Mapping[str, ReasonForEnd] = field(default_factory=dict[str, ReasonForEnd])
    usage: UsageCounting = "so_far"
    prompt_cache: bool = True
    context_window: int | None = None


_OPENAI: Final = Capabilities(max_tokens_field="max_completion_tokens")
CAPABILITIES: Final[Mapping[tuple[ProviderKind, Api], Capabilities]] = MappingProxyType(
    {
        ("openai", "chat"): _OPENAI,
        ("openai", "responses"): _OPENAI,
        ("anthropic", "messages"): Capabilities(keeps_system_place=False, tool_schema="anthropic"),
        ("openai-compatible", "chat"): Capabilities(prompt_cache=False),
        ("local", "chat"): Capabilities(prompt_cache=False),
    }
)
"""What the servers of each kind take, by their documentation."""


def minimum_tokens(model: str) -> int:
    """Return the tokens from which on a beginning is kept. Source: Anthropic's and OpenAI's guides."""
    return next((least for names, least in _MINIMUM_TOKENS if names.search(model)), 1_024)


def default_api(kind: ProviderKind) -> Api:
    """Return the API by which the models of a provider are called, but where one searches the web."""
    return "messages" if kind == "anthropic" else "chat"


class CapabilityTable:
    """The capabilities of the models of one connection: the table, the settings, and what was learned.

    Args:
        kind: The kind of the provider.
        settings: Its table, whose entries nothing that is learned replaces.
    """

    def __init__(self, kind: ProviderKind, settings: ProviderSettings) -> None:
        self._kind: ProviderKind = kind
        self._set = {
            name: value
            for name in settings.model_fields_set & Capabilities.__dataclass_fields__.keys()
            if (value := getattr(settings, name)) is not None
        }
        self._learned: dict[tuple[Api, str], dict[str, Any]] = {}

    def of(self, api: Api, model: str) -> Capabilities:
        """Return the capabilities of a model."""
        learned = self._learned.get((api, model), {})
        return replace(CAPABILITIES[self._kind, api], **{**learned, **self._set})

    def learn(self, api: Api, model: str, changes: Mapping[str, Any]) -> bool:
        """Keep what a server has refused; return whether anything is otherwise than before."""
        before = self.of(api, model)
        if len(self._learned) >= _MAX_LEARNED and (api, model) not in self._learned:
            self._learned.clear()
        self._learned.setdefault((api, model), {}).update(changes)
        return self.of(api, model) != before

    def forget(self, api: Api, model: str, entries: Iterable[str]) -> None:
        """Drop what was learned of some entries: it was not what the server had refused."""
        for entry in entries:
            self._learned.get((api, model), {}).pop(entry, None)
