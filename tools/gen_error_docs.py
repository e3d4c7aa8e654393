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

## Exceptions in Python

All are subclasses of `planwave.PlanwaveError` and have `code`, `message` and `hint`. An argument of a wrong
type is a `TypeError`.

| exception | raised when |
| --- | --- |
| `planwave.InputError` | The input cannot be used. All down to `LimitExceeded` are subclasses of it. |
| `planwave.GraphInvalid` | A graph has errors; `error.diagnostics` has all of them. |
| `planwave.PlanInvalid` | A model did not write a valid plan; a subclass of `GraphInvalid`. |
| `planwave.InvalidAnswer` | An answer does not fit its request; a subclass of `GraphInvalid`. |
| `planwave.InvalidChanges` | The changes of a fork do not fit its graph; a subclass of `GraphInvalid`. |
| `planwave.UnknownProvider`, `planwave.UnavailableProvider`, `planwave.UnknownModel` | The provider or model cannot be used here. |
| `planwave.NotFound` | There is no execution, node or request of that name. |
| `planwave.Conflict` | The call is not possible in the present state: answered already, still running, nothing to retry. |
| `planwave.Gone` | The request was closed before the answer. |
| `planwave.InvalidOperation` | `Client`: an operation does not fit its plan or flow; a subclass of `GraphInvalid`. |
| `planwave.PreconditionFailed`, `planwave.PreconditionRequired` | `Client`: the plan or flow was changed since it was read; the version is missing. |
| `planwave.Unauthorized`, `planwave.Forbidden` | `Client`: the token is missing or wrong; the service does not allow the request. |
| `planwave.TooManyRequests`, `planwave.QueueFull`, `planwave.QuotaExceeded` | `Client`: the service takes no more work now; `error.retry_after_s` says when to try again. |
| `planwave.LimitExceeded` | A configured limit was exceeded. |
| `planwave.ExecutionFailed` | An awaited run failed; `error.failures` holds a `planwave.Failure` for each node that failed. |
| `planwave.NodeError`, `planwave.PermanentError` | Raised by your own node types; a permanent error is not retried. |
| `planwave.ProviderError` | A model call failed; a subclass of `NodeError`. |
| `planwave.OutboundError` | A request to a URL was refused or failed; a subclass of `NodeError`. |
| `planwave.McpError` | An MCP server did not start, or a call of a tool failed; a subclass of `NodeError`. |
| `planwave.ToolError` | A call of a tool failed; raise it in a tool for the model to see. |
| `planwave.StoreError` | The store failed. |
| `planwave.StaleEpoch` | Another process or run now owns the execution; a subclass of `StoreError`. |
| `planwave.SchemaTooNew` | A newer planwave wrote the database; a subclass of `StoreError`. |
| `planwave.Unreachable`, `planwave.ShuttingDown`, `planwave.SlowConsumer` | `Client`: nothing answers at the address; the service ends; the events were read too slowly. |
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
