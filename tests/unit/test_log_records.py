"""What an ordinary set-up of the standard library's logging shows of a record with fields."""

from __future__ import annotations

import ast
import io
import logging
import logging.handlers
import pickle
from pathlib import Path
from queue import Queue

import pytest

import planwave
from planwave.log_records import FIELDS, Message, words_of, write_record

TRACE = "Traceback (most recent call last):\n  File \"shop.py\", line 3, in pay\nKeyError: '1042'"
SHOWN = """node failed node=pay error="KeyError: '1042'\""""


def logged(handler: logging.Handler, level: int = logging.INFO, trace: str | None = None) -> None:
    """Log one record of a failure to a handler."""
    logger = logging.Logger("planwave.execution", level)
    logger.addHandler(handler)
    fields = {"node": "pay", "error": "KeyError: '1042'", "hint": None}
    write_record(logger, logging.ERROR, "node failed", fields, trace)


@pytest.mark.parametrize("form", [None, logging.BASIC_FORMAT, "%(message)s"])
def test_an_ordinary_formatter_shows_fields_and_traceback(form: str | None) -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter(form))
    logged(handler, trace=TRACE)
    first, *rest = stream.getvalue().splitlines()
    assert first.endswith(SHOWN)
    assert rest == TRACE.splitlines()


def test_a_queue_and_a_pickle_keep_the_fields() -> None:
    queue: Queue[logging.LogRecord] = Queue()
    logged(logging.handlers.QueueHandler(queue), trace=TRACE)
    record = pickle.loads(pickle.dumps(queue.get()))  # noqa: S301 - made here
    assert record.getMessage() == f"{SHOWN}\n{TRACE}"
    assert getattr(record, FIELDS) == {"node": "pay", "error": "KeyError: '1042'"}


def test_a_record_names_the_code_that_logged_it() -> None:
    queue: Queue[logging.LogRecord] = Queue()
    logged(logging.handlers.QueueHandler(queue))
    assert queue.get().funcName == "logged"


def test_nothing_is_made_below_the_level() -> None:
    queue: Queue[logging.LogRecord] = Queue()
    logged(logging.handlers.QueueHandler(queue), level=logging.CRITICAL)
    assert queue.empty()


def test_a_value_cannot_add_a_line() -> None:
    assert "\n" not in str(Message("failed", {"error": "evil\nERROR:root:all is lost"}))


def test_words_are_without_fields() -> None:
    record = logging.LogRecord("x", logging.INFO, "", 1, Message("failed", {"a": 1}), (), None)
    assert words_of(record) == "failed"
    record.msg, record.args = "%s failed", ("a",)
    assert words_of(record) == "a failed"


def test_no_other_way_gives_a_record_what_a_formatter_does_not_show() -> None:
    """``extra=`` is shown by no ordinary formatter, so every field goes through ``write_record``."""
    root = Path(planwave.__file__).parent
    calls = [
        f"{path.relative_to(root)}:{node.lineno}"
        for path in root.rglob("*.py")
        if path.name != "log_records.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("debug", "info", "warning", "error", "exception", "log")
        and any(keyword.arg == "extra" for keyword in node.keywords)
    ]
    assert calls == []
