"""The adapters: those of planwave, and those of installed packages."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, cast

from planwave.triggers.adapter import TriggerAdapter
from planwave.triggers.schedules import Schedules
from planwave.triggers.sse_source import SseSources
from planwave.triggers.webhooks import Webhooks

_log = logging.getLogger(__name__)

ENTRY_POINTS: Final = "planwave.triggers"
LIBRARY: Final[tuple[type[TriggerAdapter], ...]] = (Webhooks, Schedules, SseSources)


@cache
def installed_adapters() -> tuple[type[TriggerAdapter], ...]:
    """Return the adapters of planwave and of installed packages, loaded once per process."""
    return with_entry_points(LIBRARY, entry_points(group=ENTRY_POINTS))


def with_entry_points(
    adapters: Iterable[type[TriggerAdapter]], points: Iterable[EntryPoint]
) -> tuple[type[TriggerAdapter], ...]:
    """Add the adapters that entry points name; a broken one is logged and left out.

    An entry point names a subclass of ``TriggerAdapter``, or a list of them. Its node type may
    not have an adapter yet.
    """
    by_type = {each.node_type: each for each in adapters}
    for point in points:
        try:
            loaded: Any = point.load()
            several = isinstance(loaded, (list, tuple))
            candidates = cast("Iterable[Any]", loaded) if several else [loaded]
            by_type |= _checked(candidates, by_type)
        # Foreign code may fail in any way on import; some of it calls sys.exit.
        except (Exception, SystemExit) as error:  # noqa: BLE001
            _log.warning("trigger package %s (%s) left out: %s", point.name, point.value, error)
    return tuple(by_type.values())


def _checked(
    candidates: Iterable[Any], present: dict[str, type[TriggerAdapter]]
) -> dict[str, type[TriggerAdapter]]:
    new: dict[str, type[TriggerAdapter]] = {}
    for each in candidates:
        if not (isinstance(each, type) and issubclass(each, TriggerAdapter)):
            raise TypeError(f"{each!r} is no subclass of planwave.triggers.adapter.TriggerAdapter")
        if each.listens and each.listen is TriggerAdapter.listen:
            raise TypeError(f"{each!r} has listens = True and no method listen")
        if each.node_type in present or each.node_type in new:
            raise ValueError(f"there is an adapter of {each.node_type!r} already")
        new[each.node_type] = each
    return new
