"""Text as models write it at its worst, for every screen that shows text."""

from __future__ import annotations

from typing import Final

_COLUMNS: Final = [f"Customer number {i}" for i in range(10)]
_ROW: Final = ["shipped on Monday", "2026-11-28", "Überlingen", *["1,234.50"] * 7]
PIXEL: Final = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9Q"
    "DwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
DIAGRAM: Final = """flowchart LR
  a[Order] --> b{Paid?}
  b -- yes --> c[Ship it]
  b -- no --> d["Remind <b>them</b>"]
  style c fill:#cfc
"""
WIDE_TABLE: Final = "\n".join(
    [f"| {' | '.join(_COLUMNS)} |", f"|{'---|' * 10}", *[f"| {' | '.join(_ROW)} |"] * 3]
)
LONG_LINE: Final = (
    "const answer = await " + "fetchEverything(withAll, theOptions).then(each => each) " * 6
)
LONG_WORD: Final = "donaudampfschifffahrtsgesellschaft" * 8
NASTY_NAME: Final = f"العربية 東京の朝は早い <b>bold</b> {LONG_WORD[:136]}"
"""For names, titles and goals, which are one line."""

NASTY_TEXT: Final = f"""# A report with everything

## Table

{WIDE_TABLE}

## Code

```js
// What is longest
{LONG_LINE};
```

A word without an end: {LONG_WORD}, and https://example.org/{"path/" * 60}

## Mathematics

From $5 to $10 the share is $\\frac{{a}}{{b}}\\,x_1$, and

\\[
\\sum_{{i=1}}^{{n}} i = \\frac{{n(n+1)}}{{2}}
\\]

## Diagram

```mermaid
{DIAGRAM}```

## Scripts

السعر هو 25 دولارا لكل شخص، ويشمل الإفطار.

- שלום עולם, זה פריט ברשימה.
- 東京の朝は早い。市場は五時に開き、十時には終わる。

![A dot]({PIXEL}) ![From elsewhere](https://example.org/picture.png)

### Third level

> A quote with `code` in it.

#### Fourth level

1. one
2. two
"""

LONG_TEXT: Final = NASTY_TEXT + "\n\n".join(
    f"## Section {i}\n\nMost of a long report is sentences that somebody has to read to the end. "
    * 5
    for i in range(60)
)
"""More than 30 kB."""
