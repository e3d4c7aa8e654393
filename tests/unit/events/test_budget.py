from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.events import Event
from planwave.events.budget import (
    AMOUNTS,
    WALL_S,
    Budget,
    Spending,
    amount_text,
    budget_request,
    is_amount,
    used_text,
)
from planwave.events.types import typed_event


@pytest.mark.parametrize(
    ("name", "amount", "text"),
    [
        ("usd", 0, "$0.00"),
        ("usd", 4.1, "$4.10"),
        ("usd", 0.0512, "$0.0512"),
        ("usd", 0.0000106, "$0.0000106"),
        ("tokens", 12_000, "12,000 tokens"),
        ("calls", 1, "1 call"),
        ("wall_s", 90.5, "90.5 s"),
    ],
)
def test_amounts_are_written_without_an_exponent(name: str, amount: float, text: str) -> None:
    assert amount_text(name, amount) == text


def test_what_is_used_is_written_beside_its_limit() -> None:
    used = used_text({"usd": 5, "calls": 1}, {"usd": 0.0000106, "calls": 1})
    assert used == "$0.0000106 of $5.00, 1 of 1 call"


def proposed(
    limits: dict[str, float], used: dict[str, float], *calls: dict[str, float], **more: Any
) -> dict[str, float]:
    waiting = {"a": list(calls)} if calls else {}
    return budget_request(Budget(limits), used, Spending(), waiting, **more)["proposed"]


def test_only_the_limits_that_do_not_suffice_are_proposed_higher() -> None:
    call = {"calls": 1.0, "tokens": 4_318.0, "usd": 0.00496}
    used = {"usd": 0.0, "tokens": 0}
    assert proposed({"usd": 5.0, "tokens": 2_000}, used, call) == {"tokens": 5_000}
    assert proposed({"usd": 0.001, "tokens": 9_000}, used, call) == {"usd": 0.005}
    assert proposed({"tokens": 8_000}, {"tokens": 4_000}, call, call) == {"tokens": 20_000}


def test_what_changes_of_the_plan_have_used_is_named_as_such() -> None:
    spending = Spending()
    for seq, (path, tokens) in enumerate([("a", 70), (None, 80)], 1):
        data = {"input_tokens": tokens}
        spending.observe(typed_event(Event("x", seq, "", "usage", path, 1, data)))
    request = budget_request(Budget({"tokens": 160}), {"tokens": 150}, spending, {})
    told = "Most was used by changes of its plan (80 tokens), 'a' (70 tokens)."
    assert told in request["message"]


def test_more_time_is_proposed_once_it_is_used_up() -> None:
    limits, used = {"wall_s": 60.0, "tokens": 9_000}, {"wall_s": 60.4, "tokens": 0}
    assert proposed(limits, used, is_out_of_time=True) == {"wall_s": 200.0}
    call = {"tokens": 9_500.0}
    both = proposed(limits, used, call, is_out_of_time=True)
    assert both == {"wall_s": 200.0, "tokens": 10_000}


_AMOUNT = st.integers(1, 10**9)


@given(st.data())
def test_with_the_proposed_limits_every_waiting_call_can_be_made(data: st.DataObject) -> None:
    names = data.draw(st.sets(st.sampled_from(AMOUNTS), min_size=1).map(sorted))
    unit = {"usd": 1e-6, WALL_S: 0.001}
    drawn = {name: data.draw(_AMOUNT) * unit.get(name, 1) for name in names}
    used = {name: data.draw(_AMOUNT) * unit.get(name, 1) for name in names}
    amounts = st.fixed_dictionaries({"calls": st.just(1.0), "tokens": _AMOUNT.map(float)})
    calls = data.draw(st.lists(amounts, min_size=1, max_size=4))
    raised = proposed(drawn, used, *calls)
    assert all(is_amount(name, most) and most > used[name] for name, most in raised.items())
    needed = {name: sum(each.get(name, 0.0) for each in calls) for name in names}
    for name, most in {**drawn, **raised}.items():
        assert not needed[name] or used[name] + needed[name] <= most
    assert raised.keys() == {
        name for name in names if needed[name] and used[name] + needed[name] > drawn[name]
    }
