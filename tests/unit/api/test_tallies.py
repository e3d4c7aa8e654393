from __future__ import annotations

import pytest
from prometheus_client.core import Metric

from planwave.api.tallies import OTHER, Counts, Names, Spread, Spreads, buckets_of


def samples(family: Metric) -> dict[tuple[str, ...], float]:
    return {(s.name, *s.labels.values()): s.value for s in family.samples}


def test_the_first_names_are_told_apart_and_all_others_are_one() -> None:
    names = Names(2)
    assert [names.of(name) for name in ("a", "b", "c", "a", "c")] == ["a", "b", OTHER, "a", OTHER]


def test_a_counter_without_labels_is_there_at_zero_and_one_with_labels_from_its_first() -> None:
    plain, labelled = Counts("planwave_a_total", "A."), Counts("planwave_b_total", "B.", "kind")
    assert samples(plain.family()) == {("planwave_a_total",): 0}
    assert samples(labelled.family()) == {}
    labelled.add(("x",), 2)
    labelled.of(("x",)).amount += 1
    assert samples(labelled.family()) == {("planwave_b_total", "x"): 3}


@pytest.mark.parametrize(
    ("value", "sizes"),
    [(0.0, [1, 0, 0]), (1.0, [1, 0, 0]), (1.1, [0, 1, 0]), (2.0, [0, 1, 0]), (9.0, [0, 0, 1])],
)
def test_a_bucket_holds_its_upper_bound(value: float, sizes: list[int]) -> None:
    spread = Spread((1.0, 2.0))
    spread.note(value)
    assert (spread.sizes, spread.total) == (sizes, value)


def test_each_bucket_told_holds_all_smaller_ones() -> None:
    assert buckets_of((0.5, 30.0), (1, 2, 4)) == [("0.5", 1), ("30.0", 3), ("+Inf", 7)]
    spreads = Spreads("planwave_s_seconds", "S.", (1.0,), "kind")
    for value in (0.5, 5.0):
        spreads.of(("x",)).note(value)
    assert samples(spreads.family()) == {
        ("planwave_s_seconds_bucket", "x", "1.0"): 1,
        ("planwave_s_seconds_bucket", "x", "+Inf"): 2,
        ("planwave_s_seconds_count", "x"): 2,
        ("planwave_s_seconds_sum", "x"): 5.5,
    }
