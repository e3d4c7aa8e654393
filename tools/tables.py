"""Write the tables of docs/operations.md anew, from the settings and the metrics themselves.

Usage: ``python tools/tables.py``. A table stands between two comments that name it; a test fails
where the document is behind.
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


def settings_table() -> str:
    """Give every setting with its environment variable, default, range and meaning."""
    from planwave.settings import Settings

    rows = _rows(Settings, "PLANWAVE_", without=("limits", "providers"))
    return _table(("setting", "environment", "default", "from … to", "what it is"), rows)


def limits_table() -> str:
    """Give every limit with its environment variable, default, hard cap and meaning."""
    from planwave.settings import Limits

    rows = _rows(Limits, "PLANWAVE_LIMIT_")
    return _table(("limit", "environment", "default", "from … to", "what it limits"), rows)


def providers_table() -> str:
    """Give what a table ``[providers.NAME]`` may hold."""
    from planwave.settings import ProviderSettings

    rows = [(name, *rest) for name, _, *rest in _rows(ProviderSettings, "")]
    return _table(("key", "default", "from … to", "what it is"), rows)


def metrics_table() -> str:
    """Give every metric with its kind, labels and meaning."""
    from planwave.api.metrics import PrometheusObserver

    rows: list[Sequence[str]] = []
    for family in PrometheusObserver().collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels: Sequence[str] = getattr(family, "_labelnames", ())  # told by no public name
        shown = ", ".join(f"`{label}`" for label in labels)
        rows.append((f"`{name}`", family.type, shown, family.documentation))
    return _table(("metric", "kind", "labels", "what it tells"), rows)


TABLES = {
    "settings": settings_table,
    "limits": limits_table,
    "providers": providers_table,
    "metrics": metrics_table,
}


def updated(text: str) -> str:
    """Give a document with all its tables as they should be.

    Raises:
        ValueError: A table has no place in it.
    """
    for name, table in TABLES.items():
        place = re.compile(rf"(<!-- table: {name} -->\n).*?(<!-- end of table -->)", re.DOTALL)
        if not place.search(text):
            raise ValueError(f"there is no place for the table {name}")
        made = table()
        text = place.sub(lambda found, made=made: f"{found[1]}{made}{found[2]}", text)
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


def _default(field: FieldInfo) -> str:
    value: Any = field.get_default(call_default_factory=True)
    if value is None or value == []:
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
    """Bring the document up to date."""
    text = DOCUMENT.read_text("utf-8")
    new = updated(text)
    if new != text:
        DOCUMENT.write_text(new, "utf-8")
        print(f"{DOCUMENT.relative_to(ROOT)} was brought up to date")
    return 0


if __name__ == "__main__":
    sys.exit(main())
