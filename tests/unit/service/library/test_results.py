"""The error of a failed run: what it is raised from, and what its message says."""

from __future__ import annotations

import asyncio
import gc
import json
import traceback
import weakref
from typing import Any

import pytest

import planwave
from planwave.nodes.authoring.function import node
from planwave.nodes.library import LIBRARY

FLOW = {"channel": "flow"}


class Kept:
    """An object that a weak reference can follow."""


LIVING: list[weakref.ref[Kept]] = []


@pytest.fixture
def registry() -> planwave.Registry:
    registry = planwave.Registry(LIBRARY)

    @node("deep", registry=registry)
    async def deep(input: str) -> Any:  # pyright: ignore[reportUnusedFunction]
        kept = Kept()
        LIVING.append(weakref.ref(kept))
        return json.loads(input)

    @node("threaded", registry=registry)
    def threaded(input: str) -> Any:  # pyright: ignore[reportUnusedFunction]
        return json.loads(input)

    @node("planned", registry=registry)
    async def planned(input: str) -> Any:  # pyright: ignore[reportUnusedFunction]
        raise planwave.PermanentError(f"no {input}")

    return registry


def graph(**types: str) -> dict[str, Any]:
    """Return a start with nodes of these types behind it."""
    nodes = [{"id": node_id, "type": each} for node_id, each in types.items()]
    edges = [{"source": "s", "target": node_id, "data": FLOW} for node_id in types]
    return {"nodes": [{"id": "s", "type": "start"}, *nodes], "edges": edges}


def failure_of(
    document: dict[str, Any], registry: planwave.Registry, message: Any = "nope"
) -> planwave.ExecutionFailed:
    with pytest.raises(planwave.ExecutionFailed) as caught:
        planwave.run_sync(planwave.build(document, message, registry=registry))
    return caught.value


def files_of(error: BaseException) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


@pytest.mark.parametrize("kind", ["deep", "threaded"])
def test_a_failed_run_is_raised_from_what_its_node_raised(
    registry: planwave.Registry, kind: str
) -> None:
    error = failure_of(graph(d=kind), registry)
    assert isinstance(error.__cause__, json.JSONDecodeError)
    assert error.__suppress_context__
    assert files_of(error.__cause__)[0] == kind  # no frame of planwave before
    printed = "".join(traceback.format_exception(error))
    assert printed.count("direct cause") == 1
    assert "raw_decode" in printed


def test_an_error_of_planwave_that_a_node_raised_is_the_cause_too(
    registry: planwave.Registry,
) -> None:
    assert isinstance(failure_of(graph(p="planned"), registry).__cause__, planwave.PermanentError)


def test_several_failures_are_a_group_in_the_order_of_the_graph(
    registry: planwave.Registry,
) -> None:
    cause = failure_of(graph(a="deep", b="planned"), registry).__cause__
    assert isinstance(cause, ExceptionGroup)
    assert cause.message == "2 steps failed"
    assert [type(each).__name__ for each in cause.exceptions] == [
        "JSONDecodeError",
        "PermanentError",
    ]


def test_the_first_twenty_causes_are_kept(registry: planwave.Registry) -> None:
    cause = failure_of(
        graph(**{f"n{number}": "planned" for number in range(25)}), registry
    ).__cause__
    assert isinstance(cause, ExceptionGroup)
    assert len(cause.exceptions) == 20


def loop(on_error: str) -> dict[str, Any]:
    body = graph(deep="deep")
    data = {"body": body, "onItemError": on_error}
    document = graph(m="loop", last="planned")
    document["nodes"][1]["data"] = data
    return document


def test_a_step_that_failed_by_one_inside_it_is_no_cause_and_not_in_the_message(
    registry: planwave.Registry,
) -> None:
    error = failure_of(loop("fail"), registry, ["nope"])
    assert [str(each.path) for each in error.failures] == ["m", "last", "m[0]/deep"]
    assert error.message.startswith('last: no ["nope"]; m[0]/deep: JSONDecodeError')
    assert "nested" not in error.message
    assert error.message.count("Expecting value") == 1
    cause = error.__cause__
    assert isinstance(cause, ExceptionGroup)
    assert [type(each).__name__ for each in cause.exceptions] == [
        "PermanentError",
        "JSONDecodeError",
    ]


def test_failures_that_a_loop_skips_take_no_place_of_a_cause(registry: planwave.Registry) -> None:
    document = loop("skip")
    document["edges"][1]["source"] = "m"
    error = failure_of(document, registry, ["nope"] * 30)
    assert isinstance(error.__cause__, planwave.PermanentError)


def test_failures_inside_a_loop_that_goes_on_take_no_place_of_a_cause_beside_it(
    registry: planwave.Registry,
) -> None:
    held = asyncio.Event()

    @node("late", registry=registry)
    async def late(input: Any) -> str:  # pyright: ignore[reportUnusedFunction]
        await held.wait()
        raise ConnectionError("late")

    @node("releases", registry=registry)
    async def releases(input: Any) -> Any:  # pyright: ignore[reportUnusedFunction]
        if input == "29":
            held.set()
            await asyncio.sleep(0)
        raise ValueError(input)

    document = graph(m="loop", last="late")
    document["nodes"][1]["data"] = {"body": graph(r="releases"), "onItemError": "skip"}
    error = failure_of(document, registry, [str(number) for number in range(30)])
    assert isinstance(error.__cause__, ConnectionError)


def test_a_retry_that_succeeds_leaves_no_cause() -> None:
    registry, attempts = planwave.Registry(LIBRARY), list[int]()

    @node("flaky", registry=registry)
    async def flaky(input: str) -> str:  # pyright: ignore[reportUnusedFunction]
        attempts.append(1)
        if len(attempts) == 1:
            raise ConnectionError("not yet")
        return input

    document = graph(f="flaky")
    document["nodes"][1]["policy"] = {"retry": {"attempts": 2}}
    result = planwave.run_sync(planwave.build(document, "x", registry=registry))
    assert result.raise_for_status() is result
    assert len(attempts) == 2


def test_a_run_that_failed_in_another_process_has_no_cause(
    registry: planwave.Registry, tmp_path: Any
) -> None:
    built = planwave.build(graph(d="deep"), "nope", registry=registry)
    failed = planwave.run_sync(built, store=tmp_path, check=False)
    stored = planwave.open(tmp_path, failed.execution_id, registry=registry)
    with pytest.raises(planwave.ExecutionFailed) as caught:
        stored.wait()
    assert caught.value.__cause__ is None
    (node,) = [each for each in stored.result().document["nodes"] if each["path"] == "d"]
    assert "raw_decode" in node.get("traceback", "")


def test_the_frames_of_a_cause_live_as_long_as_the_result(registry: planwave.Registry) -> None:
    LIVING.clear()
    built = planwave.build(graph(d="deep"), "nope", registry=registry)
    result: Any = planwave.run_sync(built, check=False)
    gc.collect()
    assert LIVING[0]() is not None
    del result
    gc.collect()
    assert LIVING[0]() is None


SECRET = "s3cr3t-of-the-shop"


def test_a_stored_traceback_holds_no_secret() -> None:
    registry = planwave.Registry(LIBRARY)

    class Services:
        def redact(self, value: Any) -> Any:
            return value.replace(SECRET, "[secret shop]") if isinstance(value, str) else value

    @node("pays", registry=registry)
    async def pays(input: str) -> str:  # pyright: ignore[reportUnusedFunction]
        try:
            raise ConnectionError(f"refused by https://shop.test?key={SECRET}")
        except ConnectionError as error:
            raise ValueError("no shop") from error

    built = planwave.build(graph(p="pays"), "x", registry=registry)
    result = planwave.run_sync(built, check=False, services=Services())
    (node_document,) = [each for each in result.document["nodes"] if each["path"] == "p"]
    assert "[secret shop]" in node_document.get("traceback", "")
    assert SECRET not in json.dumps(result.document)
