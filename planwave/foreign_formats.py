"""Which program wrote a document: its format, told by the shape of the JSON and never by a file's name.

The check of graphs uses it to name a file of another program in place of a hundred field errors;
``interop/importing/`` uses it to choose the converter. A format is recognised by parts that only its own files
have; a document that fits two formats is of neither until a person names one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple, cast

PLANWAVE: Final = "planwave"
MERMAID: Final = "mermaid"
NOUNS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "agiraph": "an agiraph plan",
        "agentflow": "an AgentFlow workflow",
        "covalt": "a Covalt graph",
        "magic-agents": "a magic_agents flow",
        "dify": "a Dify app",
        "n8n": "an n8n workflow",
        "langflow": "a Langflow flow",
        "flowise": "a Flowise flow",
        "sandcastle": "a Sandcastle workflow",
        MERMAID: "a Mermaid flowchart",
        PLANWAVE: "a planwave graph",
    }
)
"""Each format, and what a file of it is called in a sentence."""

_WRAPPERS: Final = ("graph", "workflow", "content")
"""Fields that hold the document where a file is a request body or a stored record of its program."""
_COVALT_TYPES: Final = frozenset(
    {
        "chat-start", "webhook-trigger", "webhook-end", "llm-completion", "prompt-template",
        "model-selector", "mcp-server", "droid-agent", "reroute", "webhook_trigger", "webhook_end",
        "llm_completion", "prompt_template", "model_selector",
    }
)  # fmt: skip
"""Types that only Covalt has, also in the spelling of its older files."""
_MAGIC_TYPES: Final = frozenset({"constant", "python_exec", "hook", "mcp"})
_MAGIC_FIELDS: Final = frozenset({"magic_flow", "api_info", "json_extras", "output_handles"})
_DIAGRAM: Final = re.compile(
    r"\A\ufeff?\s*(?:---\r?\n.*?\n---\s*)?(?:%%[^\n]*\s*)*(?P<kind>[A-Za-z][\w-]*)", re.DOTALL
)
_FLOWCHARTS: Final = frozenset({"graph", "flowchart", "flowchart-elk"})
_DIAGRAMS: Final = frozenset(
    {
        "sequenceDiagram", "classDiagram", "stateDiagram", "stateDiagram-v2", "erDiagram", "gantt",
        "pie", "journey", "gitGraph", "mindmap", "timeline", "quadrantChart", "sankey-beta",
        "requirementDiagram", "C4Context", "block-beta", "xychart-beta", "packet-beta", "kanban",
    }
)  # fmt: skip
_DIFY_TEXT: Final = re.compile(r"^(?:app|workflow|model_config):\s*$", re.MULTILINE)


class Unwrapped(NamedTuple):
    """A document without what its program puts around it.

    Attributes:
        value: The document.
        pointer: JSON pointer of it in the file.
    """

    value: Any
    pointer: str


def unwrap(value: Any) -> Unwrapped:
    """Return the document inside ``{graph}``, ``{workflow}``, ``{content}`` or a list of one."""
    if isinstance(value, list) and len(items := cast("list[Any]", value)) == 1:
        return Unwrapped(items[0], "/0") if _formats(items[0]) else Unwrapped(value, "")
    if isinstance(value, dict) and not _formats(fields := cast("dict[str, Any]", value)):
        for name in _WRAPPERS:
            if _formats(fields.get(name)):
                return Unwrapped(fields[name], f"/{name}")
    return Unwrapped(value, "")


def formats_of(value: Any) -> tuple[str, ...]:
    """Return the formats that a parsed JSON or YAML document may be of: none, one, or several.

    Args:
        value: The document, also with what its program puts around it.
    """
    return _formats(unwrap(value).value)


def is_flowchart(text: str | bytes) -> bool:
    """Return whether a text is a Mermaid flowchart."""
    characters = text if isinstance(text, str) else text.decode("utf-8", "replace")
    return _diagram(characters) in _FLOWCHARTS


def other_diagram(text: str) -> str | None:
    """Return the kind of a Mermaid diagram that is no flowchart, such as ``sequenceDiagram``."""
    kind = _diagram(text)
    return kind if kind in _DIAGRAMS else None


def _diagram(text: str) -> str | None:
    match = _DIAGRAM.match(text)
    return None if match is None else match["kind"]


def _formats(value: Any) -> tuple[str, ...]:
    if not isinstance(value, dict):
        return ()
    document = cast("dict[str, Any]", value)
    return tuple(kind for kind, is_one in _SHAPES.items() if is_one(document))


def _is_agiraph(document: Mapping[str, Any]) -> bool:
    return any(isinstance(node.get("dependencies"), list) for node in _objects(document, "nodes"))


def _is_agentflow(document: Mapping[str, Any]) -> bool:
    return isinstance(document.get("connections"), list) and isinstance(document.get("nodes"), list)


def _is_covalt(document: Mapping[str, Any]) -> bool:
    types = {str(node.get("type")) for node in _objects(document, "nodes")}
    if types & _COVALT_TYPES or any(each.startswith("np:") for each in types):
        return True
    # planwave has the same edges; only Covalt writes positions beside them.
    has_position = any("position" in node for node in _objects(document, "nodes"))
    edges = [_object(edge, "data") for edge in _objects(document, "edges")]
    return has_position and any("channel" in data or "sourceType" in data for data in edges)


def _is_magic_agents(document: Mapping[str, Any]) -> bool:
    nodes, edges = _objects(document, "nodes"), _objects(document, "edges")
    if any("channel" in _object(edge, "data") for edge in edges) or _is_langflow(document):
        return False
    handles = [str(edge.get(end) or "") for edge in edges for end in _HANDLES]
    if any(handle.startswith(("handle_", "handle-")) for handle in handles):
        return True
    types = [str(node.get("type")) for node in nodes]
    fields = {name for node in nodes for name in _object(node, "data")}
    if not _MAGIC_TYPES.isdisjoint(types) or fields & _MAGIC_FIELDS:
        return True
    # It has one such entry, and edges whose handles are left out go to the usual ones.
    return types.count("user_input") == 1 and any("data" not in edge for edge in edges)


_HANDLES: Final = ("sourceHandle", "targetHandle")


def _is_dify(document: Mapping[str, Any]) -> bool:
    wrapped = document.get("data")
    if isinstance(wrapped, str):  # the answer of its export API
        return len(_DIFY_TEXT.findall(wrapped)) > 1
    return document.get("kind") == "app" and isinstance(document.get("app"), dict)


def _is_n8n(document: Mapping[str, Any]) -> bool:
    types = [str(node.get("type")) for node in _objects(document, "nodes")]
    return isinstance(document.get("connections"), dict) and any("." in each for each in types)


def _is_langflow(document: Mapping[str, Any]) -> bool:
    nodes = _objects(_object(document, "data"), "nodes")
    return any("template" in _object(_object(node, "data"), "node") for node in nodes)


def _is_flowise(document: Mapping[str, Any]) -> bool:
    datas = [_object(node, "data") for node in _objects(document, "nodes")]
    return any(
        "inputAnchors" in data or str(data.get("name")).endswith("Agentflow") for data in datas
    )


def _is_sandcastle(document: Mapping[str, Any]) -> bool:
    return bool(document.get("name")) and any("id" in each for each in _objects(document, "steps"))


def _is_planwave(document: Mapping[str, Any]) -> bool:
    """Return whether a document is a graph with nothing that another program writes."""
    if not isinstance(document.get("nodes"), list) or not isinstance(document.get("edges"), list):
        return "execution_id" in document and isinstance(document.get("graph"), dict)
    others = (is_one(document) for kind, is_one in _SHAPES.items() if kind != PLANWAVE)
    nodes, edges = _objects(document, "nodes"), _objects(document, "edges")
    is_typed = bool(nodes) and all(isinstance(node.get("type"), str) for node in nodes)
    return is_typed and all("channel" in _object(e, "data") for e in edges) and not any(others)


_SHAPES: Final[Mapping[str, Callable[[Mapping[str, Any]], bool]]] = MappingProxyType(
    {
        "agiraph": _is_agiraph,
        "agentflow": _is_agentflow,
        "covalt": _is_covalt,
        "magic-agents": _is_magic_agents,
        "dify": _is_dify,
        "n8n": _is_n8n,
        "langflow": _is_langflow,
        "flowise": _is_flowise,
        "sandcastle": _is_sandcastle,
        PLANWAVE: _is_planwave,
    }
)


def _objects(document: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    value = document.get(name)
    if not isinstance(value, list):
        return ()
    items = cast("list[Any]", value)
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]


def _object(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = document.get(name)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
