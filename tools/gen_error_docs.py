"""Write docs/errors.md from ``planwave.error_codes``.

Usage: ``python tools/gen_error_docs.py``. A test checks that the page is current.
"""

from __future__ import annotations

import sys
from pathlib import Path

from planwave.error_codes import ERROR_CODES, ErrorCode

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "errors.md"
HEAD = """# Error codes

Every error has a stable `code`, a message that names the values, and mostly a hint. Branch on the code,
never on the message. The codes are the same in Python (`error.code`), on the command line (`--json`), in
problem documents of the [HTTP API](api.md) and in the findings of `planwave check`. Node packages may add
their own. This page is made from `planwave/error_codes.py` by `make docs`.
"""


def page() -> str:
    """Return the text of the page."""
    sections = (f"## {title}\n\n{_table(codes)}" for title, codes in ERROR_CODES.items())
    return "\n".join((HEAD, *sections))


def _table(codes: tuple[ErrorCode, ...]) -> str:
    rows = [("code", "cause", "way out"), ("---", "---", "---")]
    rows += [(f"`{each.code}`", each.cause, each.way_out.replace("|", "\\|")) for each in codes]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


if __name__ == "__main__":
    DOCUMENT.write_text(page(), "utf-8")
    sys.exit(0)
