"""Records of a log that have fields: words, what else is to be said by name, and a stored traceback.

Any handler shows all of it: ``%(message)s`` ends with the fields, and a traceback follows where a
formatter shows one. The log of the service takes the fields from the record and gives them its form.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from typing import Any, Final

FIELDS: Final = "planwave_fields"
"""The attribute of a record with what else it says, by name."""
_AMBIGUOUS: Final = re.compile(r'[\s"=]')


class Message:
    """The message of a record with fields: ``node failed node=a error="KeyError: 'x'"``.

    Attributes:
        words: What it says without the fields.
        fields: What else it says, by name.
    """

    __slots__ = ("fields", "words")

    def __init__(self, words: str, fields: Mapping[str, Any]) -> None:
        self.words, self.fields = words, fields

    def __str__(self) -> str:
        """Return words and fields on one line."""
        return " ".join((self.words, *fields_text(self.fields)))


def service_logger(name: str) -> logging.Logger:
    """Return a logger of the service log; it is silent in a program that configures no logging."""
    logger = logging.getLogger(name)
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    return logger


def write_record(
    logger: logging.Logger,
    level: int,
    words: str,
    fields: Mapping[str, Any],
    traceback: str | None = None,
) -> None:
    """Log a record with fields; those that are None are left out.

    Args:
        logger: Where it is logged.
        level: Its level.
        words: What it says.
        fields: What else it says, by name.
        traceback: The text of a traceback that was stored before.
    """
    if not logger.isEnabledFor(level):
        return
    present = {name: value for name, value in fields.items() if value is not None}
    file, line, function, _ = logger.findCaller(stacklevel=2)
    message, extra = Message(words, present), {FIELDS: present}
    record = logger.makeRecord(logger.name, level, file, line, message, (), None, function, extra)
    record.exc_text = traceback
    logger.handle(record)


def words_of(record: logging.LogRecord) -> str:
    """Return what a record says without its fields."""
    return record.msg.words if isinstance(record.msg, Message) else record.getMessage()


def fields_text(fields: Mapping[str, Any]) -> list[str]:
    """Return ``name=value`` for each field; in quotes where the value could be read as several."""
    return [f"{name}={_value(str(value))}" for name, value in fields.items()]


def line_text(text: str) -> str:
    """Return text with control characters escaped, so that it stays on its line."""
    return text if text.isprintable() else repr(text)[1:-1]


def _value(text: str) -> str:
    shown = line_text(text)
    return json.dumps(shown, ensure_ascii=False) if not text or _AMBIGUOUS.search(shown) else shown
