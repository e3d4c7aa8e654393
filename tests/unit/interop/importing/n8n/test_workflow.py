"""The ways of a workflow are found by their ends, whatever was added and left out before."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hypothesis import given
from hypothesis import strategies as st

from planwave.interop.importing.conversion import Conversion
from planwave.interop.importing.n8n.workflow import Connections, Step, Way, Workflow

_NAMES = [f"N{number}" for number in range(7)]
_ENDS = st.tuples(st.sampled_from(_NAMES), st.sampled_from(_NAMES), st.integers(0, 2))


def _workflow(ends: Iterable[tuple[str, str, int]], passing: Iterable[str] = ()) -> Workflow:
    workflow = Workflow(Conversion("n8n"), "")
    for name in _NAMES:
        node = workflow.conversion.source_node(f"/{name}", "noOp", name)
        workflow.steps[name] = Step(name, "noOp", 1, {}, {}, node, f"/{name}")
        workflow.steps[name].passes = name in passing
    for source, target, number in ends:
        edge = workflow.conversion.source_edge("", None, None)
        workflow.ways.add(Way(source, 0, target, number, edge))
    return workflow


def _reached(name: str, following: Callable[[str], Iterable[str]]) -> set[str]:
    """Return the steps that one leads to in one step or more, by trying again until none is new."""
    found, size = set(following(name)), -1
    while size != len(found):
        size = len(found)
        found |= {each for one in found for each in following(one)}
    return found


@given(st.lists(_ENDS, max_size=14), st.sampled_from(_NAMES), st.sets(st.sampled_from(_NAMES)))
def test_ways_are_found_by_their_ends(
    ends: list[tuple[str, str, int]], name: str, without: set[str]
) -> None:
    workflow = _workflow(ends)
    ways = list(workflow.ways)
    assert list(workflow.out_of(name)) == [way for way in ways if way.source == name]
    into = sorted((way for way in ways if way.target == name), key=lambda way: way.input)
    assert list(workflow.into(name)) == into

    def targets(one: str) -> set[str]:
        return {way.target for way in ways if way.source == one and way.target not in without}

    after = _reached(name, lambda one: () if one in without else targets(one))
    expected = set[str]() if name in without else {name, *after} - without
    assert workflow.after([name], frozenset(without)) == expected
    for other in _NAMES:
        sources = _reached(name, lambda one: {way.source for way in ways if way.target == one})
        assert workflow.is_before(other, name) is (other in sources)


@given(st.lists(_ENDS, max_size=14), st.sets(st.sampled_from(_NAMES)), st.sampled_from(_NAMES))
def test_results_arrive_over_steps_that_pass_them_on(
    ends: list[tuple[str, str, int]], passing: set[str], name: str
) -> None:
    workflow = _workflow(ends, passing)

    def sources(one: str) -> set[str]:
        return {source for source, target, _ in ends if target == one}

    found = sources(name) | _reached(
        name, lambda one: sources(one) if one == name or one in passing else ()
    )
    assert workflow.origins(name) == {each for each in found if each not in passing}
    assert not workflow.has_errors(name)


def test_connections_are_found_after_each_change() -> None:
    workflow = _workflow([("N1", "N2", 1), ("N3", "N2", 0), ("N2", "N4", 0)])
    ways: Connections[Way] = workflow.ways
    assert [way.source for way in ways.into("N2")] == ["N3", "N1"]
    ways.sort_by_input()
    assert [way.source for way in ways] == ["N3", "N2", "N1"]
    ways.remove_step("N3")
    assert [way.source for way in ways.into("N2")] == ["N1"]
    ways.keep(lambda way: way.target != "N2")
    assert not ways.into("N2")
    assert [way.target for way in ways] == ["N4"]
