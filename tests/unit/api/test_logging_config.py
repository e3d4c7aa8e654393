import io
import json
import logging
import os
import time
from contextlib import suppress
from typing import Any

import pytest

from planwave.api.logging_config import (
    RequestContext,
    configure_logging,
    current_request,
    request_id,
)
from planwave.log_records import FIELDS, write_record
from planwave.redaction import Redactor
from planwave.settings import DEBUG_VARIABLE, log_levels
from tests.support.secret_spellings import CANARY, shows

_log = logging.getLogger("planwave.somewhere")


def lines(form: Any, tell: Any) -> list[str]:
    stream = io.StringIO()
    with configure_logging(stream, form):
        tell()
    return stream.getvalue().splitlines()


def test_json_log_line_has_all_fields() -> None:
    def tell() -> None:
        _log.warning("three of %s", "four", extra={FIELDS: {"status": 200}})

    (line,) = lines("json", tell)
    received = json.loads(line)
    assert received.pop("at").endswith("+00:00")
    assert received == {
        "level": "warning",
        "logger": "planwave.somewhere",
        "message": "three of four",
        "status": 200,
    }


def test_text_log_line_has_all_fields() -> None:
    (line,) = lines("text", lambda: _log.info("done", extra={FIELDS: {"status": 200, "ms": 1.5}}))
    assert line.split(" ", 1)[1] == "INFO planwave.somewhere done status=200 ms=1.5"


@pytest.mark.parametrize("form", ["json", "text"])
def test_no_line_holds_a_secret_in_message_field_or_traceback(form: Any) -> None:
    def tell() -> None:
        try:
            raise ValueError(CANARY)
        except ValueError:
            _log.exception("it said %s", json.dumps(CANARY), extra={FIELDS: {"name": CANARY}})

    stream = io.StringIO()
    with configure_logging(stream, form, Redactor({"crm": CANARY}).text):
        tell()
    assert shows(stream.getvalue()) == []
    assert stream.getvalue().count("[secret crm]") == 3


@pytest.mark.parametrize("form", ["json", "text"])
def test_log_message_cannot_add_a_line(form: str) -> None:
    forged = "evil\n2026-01-01 INFO planwave.access all is well\x1b[2J"
    received = lines(form, lambda: _log.warning("%s", forged, extra={FIELDS: {"name": forged}}))
    assert len(received) == 1
    assert "\x1b" not in received[0]


@pytest.mark.parametrize("form", ["json", "text"])
def test_log_has_traceback(form: str) -> None:
    def tell() -> None:
        try:
            raise ZeroDivisionError("by nothing")
        except ZeroDivisionError:
            _log.exception("broke")

    received = lines(form, tell)
    assert "ZeroDivisionError: by nothing" in received[-1]
    assert (len(received) == 1) is (form == "json")


def test_log_records_carry_request_id_during_the_request() -> None:
    request = RequestContext("r1")

    def tell() -> None:
        token = current_request.set(request)
        _log.info("during")
        request.is_ended = True
        assert request_id() is None
        _log.info("what it left behind")
        current_request.reset(token)
        _log.info("elsewhere")

    received = [json.loads(line) for line in lines("json", tell)]
    assert [each.get("request_id") for each in received] == ["r1", None, None]


@pytest.mark.parametrize(("debug", "count"), [("1", 1), ("", 0)])
def test_turns_of_executions_are_logged_while_debugging(
    monkeypatch: pytest.MonkeyPatch, debug: str, count: int
) -> None:
    monkeypatch.setenv(DEBUG_VARIABLE, debug)
    assert len(lines("text", lambda: logging.getLogger("planwave.turns").debug("x"))) == count


def test_configured_logging_is_restored() -> None:
    root = logging.getLogger()
    before = list(root.handlers), root.level
    received = lines("text", lambda: logging.getLogger("some.library").warning("careful"))
    assert len(received) == 1
    assert (list(root.handlers), root.level) == before


def test_text_of_a_client_that_is_not_utf8_has_no_log_line() -> None:
    def tell() -> None:
        try:
            b"\xff".decode()
        except UnicodeDecodeError:
            logging.getLogger("uvicorn.error").exception("Invalid UTF-8 sequence received")
            logging.getLogger("planwave").exception("ours")

    assert [line for line in lines("text", tell) if "Invalid UTF-8" in line] == []
    assert any("ours" in line for line in lines("text", tell))


def test_values_with_blanks_are_in_quotes() -> None:
    said = {"error": 'no "x" = y', "code": "no-x", "empty": "", "nothing": None}
    (line,) = lines("text", lambda: write_record(_log, logging.INFO, "failed", said))
    assert line.endswith(r'failed error="no \"x\" = y" code=no-x empty=""')


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_stored_traceback_is_shown(form: str) -> None:
    trace = "Traceback:\n  in a\nKeyError: x"
    fields = {"node": "a"}
    received = lines(form, lambda: write_record(_log, logging.ERROR, "node failed", fields, trace))
    if form == "json":
        entry = json.loads(received[0])
        assert (entry["message"], entry["node"]) == ("node failed", "a")
        assert entry["traceback"] == trace
    else:
        assert received[0].endswith(" node failed node=a")
        assert received[1:] == ["  | Traceback:", "  |   in a", "  | KeyError: x"]


def test_levels_are_set_by_logger_and_restored() -> None:
    logger, stream = logging.getLogger("planwave.provider"), io.StringIO()
    levels = log_levels("planwave.provider=DEBUG, warning")
    with configure_logging(stream, "text", levels=levels):
        logger.debug("seen")
        _log.info("not seen")
    assert stream.getvalue().count("\n") == 1
    assert logger.level == logging.NOTSET


@pytest.mark.parametrize("text", ["LOUD", "planwave=", "planwave=1", ""])
def test_a_level_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write one of DEBUG, INFO"):
        log_levels(text)


def test_a_pipe_that_nobody_reads_blocks_nobody() -> None:
    reading, writing = os.pipe()
    began = time.monotonic()
    with os.fdopen(writing, "w") as stream, configure_logging(stream, "text"):
        for _ in range(12_000):
            _log.info("x" * 100)
        took_s = time.monotonic() - began
        os.set_blocking(reading, False)
        read = b""
        while b"lines of the log were dropped" not in read:
            _log.info("y")
            with suppress(BlockingIOError):
                read += os.read(reading, 1 << 20)
            assert time.monotonic() - began < 20
    os.close(reading)
    assert took_s < 10
