"""What a record of a log says beside its message: fields by name, and a stored traceback."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

FIELDS: Final = "planwave_fields"
"""``extra={FIELDS: {…}}`` gives a record what else it says, by name."""
TRACEBACK: Final = "planwave_traceback"
"""The attribute of a record with the text of a traceback that was stored before."""


def service_logger(name: str) -> logging.Logger:
    """Return a logger of the service log; it is silent in a program that configures no logging."""
    logger = logging.getLogger(name)
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    return logger


def fields(values: Mapping[str, Any], traceback: str | None = None) -> dict[str, Any]:
    """Return the ``extra`` of a record: the values that are not None, and a traceback."""
    present = {name: value for name, value in values.items() if value is not None}
    return {FIELDS: present, TRACEBACK: traceback}
