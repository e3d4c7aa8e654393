"""Write the tables of docs/operations.md from the settings and the metrics.

Usage: ``python tools/gen_config_tables.py``. Each table is between two comments that name it; a test fails if
the document is not current.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from annotated_types import Ge, Gt, Le
from pydantic import BaseModel
from pydantic.fields import FieldInfo

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "operations.md"
_OWN_TABLE = ("limits",)
_UNTRUSTED = "in an untrusted file"


def settings_table() -> str:
    """Return the table of settings: environment variable, default, range, trust and meaning."""
    from planwave.settings import Settings

    rows = _with_trust(Settings, _rows(Settings, "PLANWAVE_", without=_OWN_TABLE))
    head = ("setting", "environment", "default", "from … to", _UNTRUSTED, "meaning")
    return _table(head, rows)


def limits_table() -> str:
    """Return the table of limits: environment variable, default, hard cap, trust and meaning."""
    from planwave.settings import Limits

    rows = _with_trust(Limits, _rows(Limits, "PLANWAVE_LIMIT_"))
    head = ("limit", "environment", "default", "from … to", _UNTRUSTED, "what it limits")
    return _table(head, rows)


def providers_table() -> str:
    """Return the table of the keys of ``[providers.NAME]``."""
    from planwave.settings import ProviderSettings

    rows = [(name, *rest) for name, _, *rest in _rows(ProviderSettings, "")]
    return _table(("key", "default", "from … to", "meaning"), rows)


def mcp_table() -> str:
    """Return the table of the keys of ``[mcp.NAME]``."""
    from planwave.settings import McpServerSettings

    rows = [(name, *rest) for name, _, *rest in _rows(McpServerSettings, "")]
    return _table(("key", "default", "from … to", "meaning"), rows)


def secrets_table() -> str:
    """Return the table of the keys of ``[secrets.NAME]``."""
    from planwave.settings import SecretSettings

    rows = [(name, *rest) for name, _, *rest in _rows(SecretSettings, "")]
    return _table(("key", "default", "from … to", "meaning"), rows)


def notifications_table() -> str:
    """Return the table of the keys of ``[notifications.NAME]``."""
    from planwave.setting_tables import NotificationSettings

    rows = [(name, *rest) for name, _, *rest in _rows(NotificationSettings, "")]
    return _table(("key", "default", "from … to", "meaning"), rows)


def temporal_table() -> str:
    """Return the table of the keys of ``[temporal]``."""
    from planwave.setting_tables import TemporalSettings

    rows = [(name, *rest) for name, _, *rest in _rows(TemporalSettings, "")]
    return _table(("key", "default", "from … to", "meaning"), rows)


def metrics_table() -> str:
    """Return the table of metrics, with kind, labels and meaning."""
    from planwave.api.metrics import PrometheusObserver

    rows: list[Sequence[str]] = []
    observer = PrometheusObserver()
    for family in observer.collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        shown = ", ".join(f"`{label}`" for label in observer.label_names.get(name, ()))
        rows.append((f"`{name}`", family.type, shown, family.documentation))
    return _table(("metric", "kind", "labels", "meaning"), rows)


TABLES = {
    "settings": settings_table,
    "limits": limits_table,
    "providers": providers_table,
    "mcp": mcp_table,
    "secrets": secrets_table,
    "notifications": notifications_table,
    "temporal": temporal_table,
    "metrics": metrics_table,
}


def updated(text: str) -> str:
    """Return the document with every table replaced.

    Raises:
        ValueError: The document has no comments for a table.
    """
    for name, table in TABLES.items():
        region = re.compile(rf"(<!-- table: {name} -->\n).*?(<!-- end of table -->)", re.DOTALL)
        if not region.search(text):
            raise ValueError(f"the document has no comments for the table {name}")
        rows = table()
        text = region.sub(lambda match, rows=rows: f"{match[1]}{rows}{match[2]}", text)
    return text


def _rows(
    model: type[BaseModel], prefix: str, without: Sequence[str] = ()
) -> Iterator[tuple[str, ...]]:
    for name, field in model.model_fields.items():
        if name in without:
            continue
        alias = field.validation_alias
        variable = alias if isinstance(alias, str) else f"{prefix}{name.upper()}"
        meaning = (field.description or "").replace("``", "`").replace("\n", " ")
        yield f"`{name}`", f"`{variable}`", _default(field), _range(field), meaning


def _with_trust(model: type[BaseModel], rows: Iterable[Sequence[str]]) -> Iterator[tuple[str, ...]]:
    """Add to each row of a setting what of it counts in a ``planwave.toml`` that nobody has trusted."""
    from planwave.settings import Limits, narrows

    for name, *rest, meaning in rows:
        mark = narrows(model.model_fields[name.strip("`")], is_limit=model is Limits)
        yield name, *rest, "ignored" if mark is None else mark.counts, meaning


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value: Any = field.get_default(call_default_factory=True)
    if value is None or value in ([], {}):
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _range(field: FieldInfo) -> str:
    least = next((bound for bound in field.metadata if isinstance(bound, Ge | Gt)), None)
    most = next((bound.le for bound in field.metadata if isinstance(bound, Le)), None)
    if least is None:
        return ""
    start = f"{least.ge}" if isinstance(least, Ge) else f"above {least.gt}"
    return f"{start} …" if most is None else f"{start} … {most}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |\n" for row in lines)


def main() -> int:
    """Write the document if it changed."""
    text = DOCUMENT.read_text("utf-8")
    new = updated(text)
    if new != text:
        DOCUMENT.write_text(new, "utf-8")
        print(f"{DOCUMENT.relative_to(ROOT)} updated")
    return 0


if __name__ == "__main__":
    sys.exit(main())
