"""Every limit, at the limit and one past it: generated from the settings class.

A limit is a field of ``Limits``. Each has a case in ``limit_cases``: what is done with an amount of
something under a given limit, and how more is refused. A new field without a case fails.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from planwave.config.files import load_settings
from planwave.errors import InputError, PlanwaveError
from planwave.settings import Limits
from tests.contract.http.limit_cases import (
    agents,
    chats,
    executions,
    graphs,
    mcp_servers,
    model_calls,
    notifications,
    outbound,
    requests,
    streams,
    templates,
    tools,
)
from tests.contract.http.limit_cases.registry import (
    CASES,
    Case,
    Refusal,
    refusal_of,
)
from tests.support.server.running_server import NO_RATE_LIMITS
from tests.support.virtual_loop import VirtualLoop

__all__ = [
    "agents",
    "chats",
    "executions",
    "graphs",
    "mcp_servers",
    "model_calls",
    "notifications",
    "outbound",
    "requests",
    "streams",
    "templates",
    "tools",
]


def attempt(case: Case, name: str, amount: Any) -> Refusal | None:
    """Attempt an amount under the limit of a case; return how it is refused."""
    limits = Limits(**{**NO_RATE_LIMITS.model_dump(), **case.more, name: case.value})

    async def run() -> Refusal | None:
        try:
            return await case.attempt(limits, amount)
        except PlanwaveError as error:
            return refusal_of(error)

    with asyncio.Runner(loop_factory=VirtualLoop if case.virtual else None) as runner:
        return runner.run(run())


@pytest.mark.parametrize("name", Limits.model_fields)
def test_limit_allows_its_value_and_no_more(name: str) -> None:
    case = CASES[name]
    assert attempt(case, name, case.at) is None
    refusal = attempt(case, name, case.past)
    assert refusal is not None
    assert refusal.code == case.code, refusal
    assert [text for text in case.mentions if text not in refusal.text] == [], refusal.text


@pytest.mark.parametrize("name", Limits.model_fields)
def test_limit_setting_is_bounded(name: str, tmp_path: Path) -> None:
    rules = Limits.model_fields[name].metadata
    cap = next(rule.le for rule in rules if hasattr(rule, "le"))
    assert getattr(Limits(**{name: cap}), name) == cap
    least = next((rule.ge for rule in rules if hasattr(rule, "ge")), None)
    if least is not None:
        assert getattr(Limits(**{name: least}), name) == least
    for beyond in (cap + 1, 0 if least is None else least - 1):
        with pytest.raises(ValidationError):
            Limits(**{name: beyond})
        file = tmp_path / "planwave.toml"
        file.write_text(f"[limits]\n{name} = {beyond}\n")
        with pytest.raises(InputError, match=name) as refused:
            load_settings(file)
        assert str(file) in (refused.value.hint or "")


def test_every_limit_has_a_case() -> None:
    assert set(CASES) == set(Limits.model_fields)
