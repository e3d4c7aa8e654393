"""The queue shares the running places between principals, and keeps none free while one waits."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from planwave.service.fair_queue import FairQueue


def filled(places: int, *waiting: str, burst: int = 0) -> FairQueue:
    """Return a queue in which executions such as ``a1`` wait, each of the principal of its letter."""
    queue = FairQueue(places, burst)
    for each in waiting:
        queue.add(each, each[0])
    return queue


def starts(queue: FairQueue) -> list[str]:
    """Return what gets a place now, in order."""
    return list(iter(queue.next, None))


def test_one_principal_alone_has_all_places_in_order_of_arrival() -> None:
    assert starts(filled(3, "a1", "a2", "a3", "a4", burst=5)) == ["a1", "a2", "a3"]


def test_the_next_place_is_for_the_principal_with_the_fewest() -> None:
    queue = filled(2, "a1", "a2", "a3")
    starts(queue)
    queue.add("b1", "b")
    queue.add("b2", "b")
    queue.remove("a1")
    assert starts(queue) == ["b1"]
    queue.remove("a2")
    assert starts(queue) == ["a3"]
    assert [queue.position(each) for each in ("b2", "a3", "nobody")] == [1, None, None]


def test_principals_with_equally_many_take_turns() -> None:
    queue = filled(1, "a1", "a2", "a3", "b1", "b2", "c1")
    order: list[str] = []
    while started := starts(queue):
        assert len(started) == 1
        assert not order or queue.position(started[0]) is None
        order += started
        queue.remove(started[0])
    assert order == ["a1", "b1", "c1", "a2", "b2", "a3"]


def test_what_has_started_goes_on_before_what_is_new() -> None:
    queue = filled(1, "a1", "a2", "a3")
    starts(queue)
    queue.remove("a1")
    queue.add("a1", "a", has_started=True)
    assert [queue.position(each) for each in ("a1", "a2", "a3")] == [1, 2, 3]
    assert starts(queue) == ["a1"]


def test_a_principal_without_a_place_gets_one_beyond_them_and_no_second() -> None:
    queue = filled(2, "a1", "a2", "a3", burst=2)
    starts(queue)
    for each in ("b1", "b2", "c1", "d1"):
        queue.add(each, each[0])
    assert starts(queue) == ["b1", "c1"]
    queue.remove("b1")
    assert starts(queue) == ["d1"], "d has waited since before b1 ended"
    queue.remove("c1")
    assert starts(queue) == ["b2"], "b has none again"
    queue.remove("d1")
    assert starts(queue) == [], "a has places, and three of two are taken"


def test_work_that_cannot_be_held_up_takes_a_place_even_where_none_is_free() -> None:
    queue = filled(1, "a1", "a2")
    starts(queue)
    queue.take("b1", "b")
    queue.take("b1", "b")
    queue.add("b1", "b")  # it has one, so it does not wait
    assert (queue.running, queue.waiting) == (2, 1)
    queue.remove("a1")
    assert starts(queue) == []
    queue.remove("b1")
    assert starts(queue) == ["a2"]


_MOVES = st.lists(
    st.tuples(
        st.sampled_from(["new", "started", "end", "rest", "leave"]),
        st.sampled_from("abcd"),
        st.integers(0, 30),
    ),
    max_size=120,
)


@given(_MOVES, st.integers(1, 4), st.integers(0, 3))
def test_the_rules_hold_for_all_arrivals_and_ends(
    moves: list[tuple[str, str, int]], places: int, burst: int
) -> None:
    """Work conserving, fair, first come first served in a principal, and never above the bound."""
    queue = FairQueue(places, burst)
    running: dict[str, str] = {}
    waiting: dict[str, tuple[str, bool, int]] = {}
    for number, (move, principal, choice) in enumerate(moves):
        chosen = sorted(running)[choice % len(running)] if running else None
        if move in ("new", "started"):
            queue.add(f"{number}", principal, has_started=move == "started")
            waiting[f"{number}"] = principal, move == "new", number
        elif move == "leave" and waiting:
            gone = sorted(waiting)[choice % len(waiting)]
            queue.remove(gone)
            del waiting[gone]
        elif chosen is not None and move in ("end", "rest"):
            owner = running.pop(chosen)
            queue.remove(chosen)
            if move == "rest":
                queue.add(chosen, owner, has_started=True)
                waiting[chosen] = owner, False, number
        places_of = {queue.position(each): each for each in waiting}
        assert sorted(map(str, places_of)) == sorted(map(str, range(1, len(waiting) + 1)))
        predicted = 1
        while (started := queue.next()) is not None:
            owner, *_ = waiting[started]
            counts = Counter(running.values())
            rivals = {each for each, *_ in waiting.values()}
            assert counts[owner] == min(counts[each] for each in rivals), "the fewest go first"
            assert started == min(
                (each for each in waiting if waiting[each][0] == owner),
                key=lambda each: waiting[each][1:],
            ), "first come, first served"
            assert started == places_of[predicted], "the position said so"
            assert len(running) < places or (not counts[owner] and len(running) < places + burst)
            del waiting[started]
            running[started] = owner
            predicted += 1
        assert queue.running == len(running)
        assert queue.waiting == len(waiting)
        assert not waiting or len(running) >= places, "no place is free while one waits"
        without = {each for each, *_ in waiting.values()} - set(running.values())
        assert not without or len(running) >= places + burst


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=60), st.integers(1, 4))
def test_nobody_starves(arrivals: list[str], places: int) -> None:
    """However many others wait, a principal's next one starts after at most one end for each rival."""
    queue = FairQueue(places, 0)
    running: list[str] = []
    for number, principal in enumerate(arrivals):
        queue.add(f"{principal}{number}", principal)
    queue.add("z", "z")
    running += starts(queue)
    ends = 0
    while "z" not in running:
        queue.remove(running.pop(0))
        ends += 1
        running += starts(queue)
    assert ends <= len({*arrivals})
