"""Headers in imported graphs: those that planwave sets or allows nobody to set are left out, with a note."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, cast
from urllib.parse import urlsplit

from planwave.http_headers import (
    LOCATION,
    HeaderFault,
    answer_header_fault,
    is_relative_location,
    request_header_fault,
)
from planwave.interop.importing.conversion import SourceNode
from planwave.interop.importing.secrets import Withheld


class _Rule(NamedTuple):
    """Which headers a type of node may have.

    Attributes:
        fields: The fields of its data that hold headers.
        fault_of: Says why a header cannot be sent.
        left_out: What the report says of one that is left out.
    """

    fields: tuple[str, ...]
    fault_of: Callable[[str, str], HeaderFault | None]
    left_out: str


_REQUEST: Final = _Rule(
    ("headers", "secretHeaders"),
    request_header_fault,
    "its header {!r} is left out: requests here get it by themselves",
)
_ANSWER: Final = _Rule(
    ("headers",),
    answer_header_fault,
    "its header {!r} is left out: an answer here may not have it",
)
_RULES: Final[Mapping[str, _Rule]] = {
    "fetch": _REQUEST,
    "http_tool": _REQUEST,
    "sse": _REQUEST,
    "webhook_reply": _ANSWER,
}
"""The types of nodes with headers."""
_MEANING: Final = frozenset({"proxy-authorization", "upgrade"})
"""Headers of a connection that say more than how a body is sent."""
_HOST: Final = "host"


def settle_headers(node: SourceNode) -> None:
    """Leave out the headers that no graph may set; other ones that cannot be sent make it a placeholder."""
    for target in node.targets:
        rule = _RULES.get(target.node["type"])
        data = target.node.get("data", {})
        for field in () if rule is None else rule.fields:
            headers = data.get(field)
            if rule is None or not isinstance(headers, dict):
                continue
            written = cast("dict[str, Any]", headers)
            kept = {
                name: value for name, value in written.items() if _stays(node, rule, name, value)
            }
            if rule is _REQUEST:
                _lose_with_meaning(node, written, data.get("url"))
            if kept:
                data[field] = kept
            else:
                del data[field]


def _lose_with_meaning(node: SourceNode, written: Mapping[str, Any], url: object) -> None:
    """Lose a request that means something else without what is left out."""
    for name, value in written.items():
        if name.lower() in _MEANING:
            node.lose(f"requests here cannot have the header {name!r}", name)
        elif name.lower() == _HOST and isinstance(url, str) and value != _host_of(url):
            node.lose("it asks for another host than that of its address", name)


def _host_of(url: str) -> str | None:
    try:
        return urlsplit(url).netloc or None
    except ValueError:
        return None


def _stays(node: SourceNode, rule: _Rule, name: str, value: Any) -> bool:
    """Return whether a header may stay; say so of one that may not."""
    is_known = isinstance(value, str | int | float) and not isinstance(value, Withheld)
    text = str(value) if is_known and "{{" not in str(value) else ""
    fault = rule.fault_of(name, text)
    if fault == "own":
        node.change(rule.left_out.format(name))
        return False
    if fault is not None:
        node.lose(f"the header {name!r} cannot be sent", name)
    elif rule is _ANSWER and name.lower() == LOCATION and text and not is_relative_location(text):
        node.lose("the operator has to allow the host that it redirects to", text)
    return True
