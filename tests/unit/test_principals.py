"""Principals: their JSON, whose share they use, and who is recorded."""

from __future__ import annotations

import asyncio

import pytest

from planwave.principals import (
    KINDS,
    LOCAL,
    OPERATOR,
    Principal,
    acting_as,
    current_principal,
    principal_json,
    principal_text,
    set_principal,
)

TOKEN = Principal("token", "t1", "crm")


@pytest.mark.parametrize("kind", KINDS)
def test_principal_of_each_kind_survives_its_json(kind: str) -> None:
    for id_, name in ((None, None), ("i", None), ("i", "n")):
        for by in (None, TOKEN):
            principal = Principal(kind, id_, name, by)  # type: ignore[arg-type]
            assert Principal.from_json(principal.as_json()) == principal
            assert Principal.from_text(principal_text(principal)) == principal
            assert str(principal)


def test_unknown_principal_stays_unknown() -> None:
    assert principal_json(None) is principal_text(None) is Principal.from_text(None) is None
    assert Principal.from_json({"kind": "robot"}) is None


def test_trigger_and_chat_use_the_share_of_who_set_them_up() -> None:
    operators = {Principal(kind).account for kind in KINDS if kind not in ("token", "link")}
    assert operators == {OPERATOR.account}
    assert TOKEN.account != OPERATOR.account
    assert Principal("trigger", "h", "webhook", TOKEN).account == TOKEN.account
    assert Principal("chat", "c", by=TOKEN).account == TOKEN.account


def test_a_link_uses_no_share_of_the_operator_or_of_who_made_it() -> None:
    accounts = {Principal("link", "l", by=by).account for by in (None, OPERATOR, TOKEN)}
    assert accounts == {"link l"}


async def test_principal_is_that_of_the_caller_and_of_the_tasks_it_starts() -> None:
    async def recorded() -> Principal:
        return current_principal()

    assert current_principal() == LOCAL
    with acting_as(TOKEN):
        assert await asyncio.create_task(recorded()) == TOKEN  # noqa: TID251
        set_principal(OPERATOR)
        assert current_principal() == OPERATOR
    assert current_principal() == LOCAL
