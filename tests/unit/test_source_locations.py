"""Tracebacks of the exceptions of nodes, as the operator reads them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from planwave.errors import OutboundError, PermanentError
from planwave.executor.node_api.results import to_node_error
from planwave.nodes.authoring.threads import call_in_thread
from planwave.source_locations import traceback_of
from tests.support.paths import ROOT


def caught(function: Callable[[], object]) -> BaseException:
    try:
        function()
    except BaseException as error:  # noqa: BLE001
        return error
    raise AssertionError("nothing was raised")


def trace(function: Callable[[], object]) -> str:
    return traceback_of(caught(function), str)


def test_a_traceback_shows_the_way_without_directories(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text = trace(lambda: json.loads("nope"))
    assert text.startswith("Traceback (most recent call last):\n")
    assert text.endswith("Expecting value: line 1 column 1 (char 0)")
    assert 'File "json/decoder.py"' in text
    assert 'File "tests/unit/test_source_locations.py"' in text
    assert str(Path.home()) not in text


def test_a_path_outside_of_all_known_directories_is_a_name() -> None:
    code = compile("def f():\n    raise ValueError('x')", "/srv/private/jobs.py", "exec")
    names: dict[str, Callable[[], object]] = {}
    exec(code, names)  # noqa: S102
    text = trace(names["f"])
    assert 'File "jobs.py", line 2, in f' in text
    assert "private" not in text


def test_frames_of_planwave_are_left_out() -> None:
    text = trace(lambda: to_node_error(None))  # type: ignore[arg-type]
    assert "planwave" not in text


async def test_what_starts_a_thread_is_left_out() -> None:
    def read() -> object:
        return json.loads("nope")

    try:
        await call_in_thread(read, {})
    except ValueError as error:
        text = traceback_of(error, str)
    assert "concurrent/futures" not in text
    assert "in read" in text


def planned() -> None:
    raise PermanentError("no")


def caused_by_another() -> None:
    try:
        json.loads("nope")
    except ValueError as error:
        raise OutboundError("no") from error


def group_of_planned() -> None:
    raise ExceptionGroup("two", [PermanentError("a"), OutboundError("b")])


@pytest.mark.parametrize("function", [planned, caused_by_another, group_of_planned])
def test_an_error_of_planwave_has_none(function: Callable[[], None]) -> None:
    assert trace(function) == ""


def chained() -> None:
    try:
        json.loads("nope")
    except ValueError as error:
        raise KeyError("price") from error


def in_context() -> None:
    try:
        json.loads("nope")
    except ValueError:
        raise KeyError("price")  # noqa: B904


def group() -> None:
    raise ExceptionGroup("two", [PermanentError("a"), caught(chained)])  # type: ignore[list-item]


@pytest.mark.parametrize("function", [chained, in_context, group])
def test_what_led_to_it_is_there(function: Callable[[], None]) -> None:
    text = trace(function)
    assert "KeyError: 'price'" in text
    assert "JSONDecodeError" in text
    assert str(Path.cwd()) not in text


def test_a_deep_one_keeps_its_innermost_frames() -> None:
    def step_39() -> object:
        return json.loads("nope")

    functions: list[Callable[[], object]] = [step_39]
    for number in range(38, -1, -1):
        names: dict[str, object] = {"inner": functions[-1]}
        exec(f"def step_{number}():\n    return inner()", names)  # noqa: S102
        functions.append(names[f"step_{number}"])  # type: ignore[arg-type]
    text = trace(functions[-1])
    assert text.count("File ") == 25
    assert "step_39" in text
    assert "step_3\n" not in text


def test_a_long_one_keeps_begin_and_end() -> None:
    def fail() -> None:
        raise ValueError("x" * 200_000 + "the end")

    text = trace(fail)
    assert len(text) < 8_100
    assert text.startswith("Traceback")
    assert "characters left out" in text
    assert text.endswith("the end")


@pytest.mark.parametrize("before", [3_900, 63_990, 100_000])
def test_a_secret_at_a_cut_is_withheld(before: int) -> None:
    secret = "sk-live-1234567890"

    def fail() -> None:
        raise ValueError("x" * before + secret + "y" * before)

    text = traceback_of(caught(fail), lambda text: text.replace(secret, "[secret]"))
    assert not any(secret[:length] in text for length in range(6, len(secret)))


class Unreadable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def unreadable() -> None:
    raise Unreadable


def with_a_surrogate() -> None:
    raise ValueError("\ud800")


@pytest.mark.parametrize("function", [unreadable, with_a_surrogate])
def test_any_exception_has_a_traceback_that_can_be_stored(function: Callable[[], None]) -> None:
    assert trace(function).encode("utf-8").startswith(b"Traceback")
