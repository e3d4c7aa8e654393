"""JavaScript expressions run by Node, and their translations run by planwave's renderer."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from planwave.errors import TemplateError
from planwave.expressions.renderer import Renderer
from planwave.expressions.templates import compile_template

NODE: Final = shutil.which("node")
_PROGRAM: Final = """
const cases = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const first = value => value[0], last = value => value[value.length - 1];
globalThis.$ifEmpty = (value, other) => {
  if (value === undefined || value === null || value === '') return other;
  return typeof value === 'object' && !Object.keys(value).length ? other : value;
};
const results = cases.map(([text, input]) => {
  const copy = JSON.parse(JSON.stringify(input));
  try {
    const value = new Function('$json', 'return (' + text + '\\n)')(copy);
    if (typeof value === 'number' && !Number.isFinite(value)) return {no_json: String(value)};
    if (value === undefined) return {value: null};
    return {value};
  } catch (error) { return {error: String(error)}; }
});
console.log(JSON.stringify(results));
"""


def run_in_node(cases: Sequence[tuple[str, Any]]) -> list[dict[str, Any]]:
    """Return ``{"value"}``, ``{"no_json"}`` (NaN, Infinity) or ``{"error"}`` of each expression.

    Args:
        cases: Expressions, each with the value of ``$json``.
    """
    assert NODE is not None
    done = subprocess.run(
        [NODE, "-e", _PROGRAM],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return json.loads(done.stdout)


class _Variables(dict[str, Any]):
    def lookup(self, root: str) -> Any:
        return self[root]


async def rendered(template: str, variables: Mapping[str, Any], renderer: Renderer) -> Any:
    """Return the value of a template as a node gets it.

    Raises:
        TemplateError: The template has none.
    """
    compiled = compile_template(template)
    if compiled is None:
        return template
    return await compiled.resolve(_Variables(variables), renderer)


async def outcome(
    template: str, variables: Mapping[str, Any], renderer: Renderer
) -> dict[str, Any]:
    """Return ``{"value"}`` or ``{"error"}`` of a template."""
    try:
        return {"value": await rendered(template, variables, renderer)}
    except TemplateError as error:
        return {"error": str(error)}


def comparable(value: Any) -> Any:
    """Return a value without what the two do not tell apart: null fields, 2.0 from 2, space in JSON."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {k: comparable(v) for k, v in fields.items() if v is not None}
    if isinstance(value, list):
        return [comparable(each) for each in cast("list[Any]", value)]
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return ("JSON", comparable(json.loads(value)))
        except ValueError:
            return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return ("number", float(value))
