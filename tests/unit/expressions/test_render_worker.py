from __future__ import annotations

import json
import socket
import subprocess
import sys
from typing import Any

import pytest

from planwave.expressions.render_worker import (
    RenderEnvironment,
    RenderError,
    SealedDict,
    SealedList,
    respond,
    seal,
)

FUEL = 100_000


def reply(source: str, op: str = "render", **variables: Any) -> dict[str, Any]:
    request = json.dumps({"op": op, "source": source, "variables": variables})
    return json.loads(respond(RenderEnvironment(1000, FUEL).answer, request.encode()))


def code(source: str, op: str = "render", **variables: Any) -> str:
    return reply(source, op, **variables)["error"]["code"]


def test_sealed_json_reads_and_never_writes() -> None:
    value = seal({"a": [1, {"b": None}]})
    assert (type(value), type(value["a"]), str(value)) == (
        SealedDict,
        SealedList,
        '{"a":[1,{"b":null}]}',
    )
    with pytest.raises(AttributeError):
        value.update({"c": 1})
    with pytest.raises(AttributeError):
        value["a"].append(1)


def test_what_the_engine_computes_reads_as_text_or_json() -> None:
    assert reply("{{ x }}{{ n }}{{ t }}{{ [x, 1.5] }}", x={"a": 1}, n=None, t=True) == {
        "value": '{"a":1}true[{"a":1},1.5]'
    }
    assert reply("x.items() | list", "evaluate", x={"a": 1}) == {"value": [["a", 1]]}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ y }}", "template-undefined"),
        ("{{ y", "template-syntax"),
        ("{{ x | nope }}", "template-forbidden"),
        ("{{ x.append(1) }}", "template-forbidden"),
        ("{{ x.get }}", "template-error"),
        ("{{ 'a' * 1001 }}", "template-too-large"),
        ("{{ 'a' * 600 }}{{ 'a' * 600 }}", "template-too-large"),
        ("a" * 1001, "template-too-large"),
        ("{% for i in range(99999) %}{% set a = i %}{% endfor %}", "template-timeout"),
        ("{{ '\ud800' }}", "template-error"),
    ],
)
def test_each_fault_has_its_code(source: str, expected: str) -> None:
    assert code(source, x={"a": 1}) == expected


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("10 / 0", 'division by zero in "10 / 0"'),
        ("x % 0.0", 'division by zero in "7 % 0.0"'),
        ("2 ** 200", 'the result is too large in "2 ** 200"'),
        ("1 + ('foo' ~ '=bar') | float", "'foo=bar' is not a number"),
        ("'7' | int + 'y' | float(3) + '' | int", "'' is not a number"),
        ("{} | int", "an object is not a number"),
        ("'a' | float if y.z else 1", "y is undefined"),
    ],
)
def test_a_failed_calculation_names_its_values(expression: str, message: str) -> None:
    assert reply(expression, "evaluate", x=7)["error"]["message"] == message


def test_values_that_are_not_json_are_refused() -> None:
    assert code("x.get", "evaluate", x={}) == "template-error"
    assert code("1e308 * 10", "evaluate") == "template-error"
    assert code("x.keys", "evaluate", x={}) == "template-error"


def test_an_error_in_a_callback_is_an_answer_too() -> None:
    def answer(request: dict[str, Any]) -> Any:
        raise KeyError(request["op"])

    failed = json.loads(respond(answer, b'{"op": "odd"}'))
    assert failed == {
        "error": {"code": "template-error", "message": "KeyError: 'odd'", "hint": None}
    }


def test_deep_values_are_an_answer_too() -> None:
    payload = b'{"op":"render","source":"","variables":{"x":' + b"[" * 9000 + b"]" * 9000 + b"}}"
    assert json.loads(respond(RenderEnvironment(1000, FUEL).answer, payload))["error"]["code"] == (
        "template-error"
    )


def test_refusals_carry_their_code() -> None:
    def answer(request: dict[str, Any]) -> Any:
        raise RenderError("template-forbidden", "no", "ask for less")

    assert json.loads(respond(answer, b"{}"))["error"] == {
        "code": "template-forbidden",
        "message": "no",
        "hint": "ask for less",
    }


def test_the_worker_ends_with_its_parent() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        arguments = [str(256 << 20), "1.0", "1000", "1000"]
        command = [sys.executable, "-m", "planwave.expressions.render_worker", *arguments]
        process = subprocess.Popen(command, stdin=theirs.fileno())
        theirs.close()
        assert ours.recv(9, socket.MSG_WAITALL) == b"\x00\x00\x00\x05ready"
        ours.close()
        assert process.wait(timeout=120) == 0
