import io
import json
import logging
from typing import Any

import pytest

from planwave.api.logging_config import (
    FIELDS,
    RequestContext,
    configure_logging,
    current_request,
    request_id,
)

_log = logging.getLogger("planwave.somewhere")


def lines(form: Any, tell: Any) -> list[str]:
    stream = io.StringIO()
    with configure_logging(stream, form):
        tell()
    return stream.getvalue().splitlines()


def test_a_json_line_holds_all_there_is_to_say() -> None:
    def tell() -> None:
        _log.warning("three of %s", "four", extra={FIELDS: {"status": 200}})

    (line,) = lines("json", tell)
    told = json.loads(line)
    assert told.pop("at").endswith("+00:00")
    assert told == {
        "level": "warning",
        "logger": "planwave.somewhere",
        "message": "three of four",
        "status": 200,
    }


def test_a_text_line_holds_the_same() -> None:
    (line,) = lines("text", lambda: _log.info("done", extra={FIELDS: {"status": 200, "ms": 1.5}}))
    assert line.split(" ", 1)[1] == "INFO planwave.somewhere done status=200 ms=1.5"


@pytest.mark.parametrize("form", ["json", "text"])
def test_nobody_can_write_a_second_line(form: str) -> None:
    forged = "evil\n2026-01-01 INFO planwave.access all is well\x1b[2J"
    told = lines(form, lambda: _log.warning("%s", forged, extra={FIELDS: {"name": forged}}))
    assert len(told) == 1
    assert "\x1b" not in told[0]


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_fault_brings_its_trace(form: str) -> None:
    def tell() -> None:
        try:
            raise ZeroDivisionError("by nothing")
        except ZeroDivisionError:
            _log.exception("broke")

    told = lines(form, tell)
    assert "ZeroDivisionError: by nothing" in told[-1]
    assert (len(told) == 1) is (form == "json")


def test_records_carry_the_request_they_belong_to_while_it_lasts() -> None:
    request = RequestContext("r1")

    def tell() -> None:
        token = current_request.set(request)
        _log.info("during")
        request.is_ended = True
        assert request_id() is None
        _log.info("what it left behind")
        current_request.reset(token)
        _log.info("elsewhere")

    told = [json.loads(line) for line in lines("json", tell)]
    assert [each.get("request_id") for each in told] == ["r1", None, None]


def test_everything_goes_to_the_stream_and_the_rest_is_as_before() -> None:
    root = logging.getLogger()
    before = list(root.handlers), root.level
    told = lines("text", lambda: logging.getLogger("some.library").warning("careful"))
    assert len(told) == 1
    assert (list(root.handlers), root.level) == before
