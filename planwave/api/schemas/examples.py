"""Examples of requests and responses for the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

PLAN_ID: Final = "019a0000-0000-7000-8000-000000000001"
EXECUTION_ID: Final = "019a0000-0000-7000-8000-000000000002"
FLOW_ID: Final = "019a0000-0000-7000-8000-00000000000a"
REQUEST_ID: Final = "r7"
TRIGGER_ID: Final = "019a0000-0000-7000-8000-00000000000c"
TOKEN_ID: Final = "019a0000-0000-7000-8000-00000000000d"  # noqa: S105
NOTIFICATION_ID: Final = "019a0000-0000-7000-8000-00000000000e"
CHAT_ID: Final = "019a0000-0000-7000-8000-00000000000d"
MESSAGE_ID: Final = "019a0000-0000-7000-8000-00000000000f"
TIME: Final = "2026-01-31T12:00:00.000000+00:00"
GOAL: Final = "Write a note about water"

_Json = dict[str, Any]

GRAPH: Final[_Json] = {
    "nodes": [
        {
            "id": "facts",
            "type": "text",
            "name": "Facts",
            "data": {"text": "Water boils at 100 °C."},
        },
        {"id": "note", "type": "text", "name": "Note", "data": {"text": "Note: {{ input }}"}},
    ],
    "edges": [
        {
            "id": "e1",
            "source": "facts",
            "sourceHandle": "output",
            "target": "note",
            "targetHandle": "input",
            "data": {"channel": "flow"},
        }
    ],
}
HASH: Final = "115e81436fbc54a229f928b4084da4c94c24dc4b8e9fd24f79aac51aa87bf9e6"
_LOGS: Final = [
    "Starting execution...",
    "Executing 1 nodes in parallel: ['facts']",
    "Starting node facts: Facts",
    "Completed node facts (took 0.01s)",
    "Executing 1 nodes in parallel: ['note']",
    "Starting node note: Note",
    "Completed node note (took 0.01s)",
    "Execution completed. Status: completed",
]
_RESULTS: Final = {"facts": "Water boils at 100 °C.", "note": "Note: Water boils at 100 °C."}
_RESULT: Final[_Json] = {"nodes": ["note"], "value": _RESULTS["note"]}
_BUDGET: Final[_Json] = {
    "limits": {"usd": 5.0, "tokens": 200_000.0},
    "used": {"usd": 0.0, "tokens": 0.0},
    "warned": [],
}
_NO_USAGE: Final[_Json] = {
    "calls": 0,
    "input_tokens": 0,
    "output_tokens": 0,
    "cost_usd": None,
    "estimated": False,
}
_ENDED_FIELDS: Final[_Json] = {
    "execution_id": EXECUTION_ID, "plan_id": PLAN_ID, "status": "completed"
}  # fmt: skip
_ENDED_WITH_OUTCOME: Final[_Json] = {**_ENDED_FIELDS, "outcome": None, "missing": []}
_TIMES: Final[_Json] = {"started_at": TIME, "completed_at": TIME}

CHECK: Final[_Json] = {
    "valid": False,
    "diagnostics": [
        {
            "code": "unknown-node-type",
            "severity": "error",
            "message": "node 'facts': there is no node type 'txt'",
            "pointer": "/nodes/0/type",
            "node": "facts",
            "hint": "did you mean 'text'?",
            "suggestion": {
                "label": "Use type text",
                "operations": [{"op": "update_node", "id": "facts", "set": {"type": "text"}}],
            },
        }
    ],
    "graph": {**GRAPH, "nodes": [{**GRAPH["nodes"][0], "type": "txt"}, *GRAPH["nodes"][1:]]},
    "ports": {},
    "forecast": None,
}
FORECAST: Final[_Json] = {
    "waves": 2,
    "nodes": 2,
    "width": 1,
    "depth": 2,
    "critical_path": ["facts", "note"],
    "calls": 0,
    "at_least": False,
    "tokens": {"low": 0, "high": 0},
    "cost_usd": {"low": 0.0, "high": 0.0},
    "effects": [],
}
_PLAN_FIELDS: Final[_Json] = {
    "plan_id": PLAN_ID,
    "user_prompt": GOAL,
    "title": "A note about water",
    "status": "draft",
    "revision": 1,
    "hash": HASH,
    "created_at": TIME,
    "name": None,
    "live_revision": 1,
    "provider": "openai",
    "model": "gpt-4o-mini",
}
PLAN: Final[_Json] = {
    **_PLAN_FIELDS,
    "description": "",
    "published": [],
    "approval": None,
    "inputs": {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
    **GRAPH,
    "diagnostics": [],
    **{"fixes": [], "questions": [], "attempts": []},
    "forecast": FORECAST,
}
_LISTED_PLAN: Final[_Json] = {
    **_PLAN_FIELDS,
    "description": "",
    "published": [],
    "updated_at": TIME,
    "updated_by": {"kind": "operator"},
    "node_count": 2,
    "error_count": 0,
}
PLANS: Final[_Json] = {"plans": [_LISTED_PLAN], "next_cursor": None}

EDITED_NOTE: Final[_Json] = {
    "op": "update_node",
    "id": "note",
    "set": {"data": {"text": "A note: {{ input }}"}},
}
EDITED_HASH: Final = "be110e1ded97bd79a1079fb39cacde44bab3765e7073c6b47df89dede072aae5"
_EDITED_NODE: Final[_Json] = {**GRAPH["nodes"][1], "data": EDITED_NOTE["set"]["data"]}
EDITED_PLAN: Final[_Json] = {
    **PLAN,
    "nodes": [GRAPH["nodes"][0], _EDITED_NODE],
    "revision": 2,
    "live_revision": 2,
    "hash": EDITED_HASH,
}
APPROVED_PLAN: Final[_Json] = {
    **EDITED_PLAN,
    "approval": {"at": TIME, "by": {"kind": "session", "id": "5f2d7c1ab1a3e0f4"}},
}
_REVISION_FIELDS: Final[_Json] = {
    "plan_id": PLAN_ID,
    "revision": 2,
    "hash": EDITED_HASH,
    "title": "A note about water",
    "author": "person",
    "note": "shorter",
    "created_at": TIME,
    "created_by": {"kind": "session", "id": "5f2d7c1ab1a3e0f4"},
    "node_count": 2,
    "error_count": 0,
    "approval": None,
}
REVISION: Final[_Json] = {
    **_REVISION_FIELDS,
    "nodes": EDITED_PLAN["nodes"],
    "edges": GRAPH["edges"],
    "diagnostics": [],
}
REVISIONS: Final[_Json] = {
    "plan_id": PLAN_ID,
    "revisions": [
        _REVISION_FIELDS,
        {**_REVISION_FIELDS, "revision": 1, "hash": HASH, "author": "planner", "note": ""},
    ],
    "next_cursor": None,
}
REVISION_DIFF: Final[_Json] = {
    "plan_id": PLAN_ID,
    "a": 1,
    "b": 2,
    "hash": [HASH, EDITED_HASH],
    "title": None,
    "nodes": [
        {
            "id": "note",
            "change": "changed",
            "fields": [
                {
                    "pointer": "/data/text",
                    "before": "Note: {{ input }}",
                    "after": "A note: {{ input }}",
                }
            ],
        }
    ],
    "edges": [],
    "reordered": [],
}

CREATED: Final[_Json] = {
    "execution_id": EXECUTION_ID,
    "plan_id": PLAN_ID,
    "revision": 1,
    "flow": None,
    "status": "starting",
    "position": None,
}
QUEUED: Final[_Json] = {**CREATED, "position": 3}
CANCELLED: Final[_Json] = {**CREATED, "status": "cancelled"}
PAUSED: Final[_Json] = {**CREATED, "status": "paused"}
RESUMED: Final[_Json] = {**CREATED, "status": "executing"}
REQUESTS: Final[_Json] = {
    "requests": [
        {
            "request_id": REQUEST_ID,
            "path": "check",
            "request": {
                "kind": "approval",
                "prompt": "Send it?",
                "actions": ["approve", "reject"],
                "form": None,
                "value": "Note: Water boils at 100 °C.",
                "editable": True,
            },
            "since": TIME,
            "timeout_s": None,
        }
    ]
}
PENDING_REQUESTS: Final[_Json] = {
    "requests": [
        {
            "execution_id": EXECUTION_ID,
            "title": "A note about water",
            "user_prompt": GOAL,
            "node_name": "Check",
            "deadline": None,
            **REQUESTS["requests"][0],
        }
    ],
    "total": 1,
    "next_cursor": None,
}
LABELS: Final[_Json] = {"name": "Water, first try", "tags": ["a"], "note": "", "starred": True}
_LISTED: Final[_Json] = {
    **_ENDED_FIELDS,
    **LABELS,
    "outcome": None,
    "planning": None,
    "revision": 1,
    "flow": None,
    "created_by": {"kind": "operator"},
    "title": "A note about water",
    "user_prompt": GOAL,
}
_DIGEST: Final[_Json] = {
    "steps": 2, "waves": [{"completed": 1}, {"completed": 1}], "models": [], "usage": _NO_USAGE,
    "parent": None, "waitingForInput": False, "inputs": "",
}  # fmt: skip
EXECUTIONS: Final[_Json] = {
    "executions": [
        {
            **_LISTED,
            "timestamp": TIME,
            "created_at": TIME,
            **_TIMES,
            "digest": _DIGEST,
        }
    ],
    "next_cursor": None,
}
EXECUTION: Final[_Json] = {
    **_LISTED,
    "missing": [],
    "plan_hash": HASH,
    "node_states": {"facts": "completed", "note": "completed"},
    "logs": _LOGS,
    "wave": {"current": 2, "total": 2},
    "queue_position": None,
    "waitingForInput": False,
    "currentNodeId": None,
    "requests": [],
    "usage": _NO_USAGE,
    "budget": _BUDGET,
    "error": None,
    "failures": [],
    "handled_failures": [],
    "reason": None,
    "cause": None,
    "inputs": None,
    "options": {"max_parallel": 64},
    "parent": None,
    "trigger": None,
    "approval": None,
    "last_seq": 11,
    "created_at": TIME,
    **_TIMES,
}
RESULT: Final[_Json] = {
    **_ENDED_WITH_OUTCOME,
    "result": _RESULT,
    "node_results": _RESULTS,
    "execution_logs": _LOGS,
    "error": None,
    **_TIMES,
}


def _node(number: int, inputs: _Json, dependencies: list[str]) -> _Json:
    written = GRAPH["nodes"][number]
    result = _RESULTS[written["id"]]
    return {
        "id": written["id"],
        "path": written["id"],
        "name": written["name"],
        "description": "",
        "type": written["type"],
        "provider": None,
        "model": None,
        "status": "completed",
        "result": result,
        "outputs": {"output": {"type": "text", "value": result}},
        "error": None,
        "error_detail": None,
        "handled": False,
        "reason": None,
        "cause": None,
        "reused": None,
        "execution_time": 0.01,
        "dependencies": dependencies,
        "inputs": inputs,
        "prompt": None,
        "wave": number + 1,
        "attempts": 1,
        "reentries": 0,
        "answers": [],
        "calls": [],
        **_TIMES,
        "usage": _NO_USAGE,
    }


DOCUMENT: Final[_Json] = {
    "schema_version": 3,
    **_ENDED_WITH_OUTCOME,
    "plan_hash": HASH,
    "revision": 1,
    "flow": None,
    "parent": None,
    "trigger": None,
    "created_by": {"kind": "operator"},
    "approval": None,
    "user_prompt": GOAL,
    "title": "A note about water",
    "timestamp": TIME,
    **_TIMES,
    "last_seq": 11,
    "error": None,
    "failures": [],
    "handled_failures": [],
    "reason": None,
    "cause": None,
    "waitingForInput": False,
    "currentNodeId": None,
    "requests": [],
    "waves": {"current": 2, "total": 2},
    "usage": _NO_USAGE,
    "budget": _BUDGET,
    "inputs": None,
    "result": _RESULT,
    "nodes": [
        _node(0, {}, []),
        _node(1, {"input": {"type": "text", "value": _RESULTS["facts"]}}, ["facts"]),
    ],
    "node_results": _RESULTS,
    "execution_logs": _LOGS,
    "graph": GRAPH,
}
EXPLANATION: Final[_Json] = {
    "path": "note",
    "status": "completed",
    "code": "inputs-arrived",
    "reason": "All nodes it depends on had ended: 'facts' delivered a value.",
    "because": [{"node": "facts", "status": "completed", "settled": "delivered", "edge": "e1"}],
    "inputs": {
        "input": {
            "text": _RESULTS["facts"],
            "arrivals": [
                {
                    "edge": "e1",
                    "source": "facts",
                    "sourceName": "Facts",
                    "sourceHandle": "output",
                    "type": "text",
                    "value": _RESULTS["facts"],
                    "text": _RESULTS["facts"],
                }
            ],
        }
    },
    "course": [
        {"seq": 8, "at": TIME, "what": "started", "attempt": 1},
        {"seq": 9, "at": TIME, "what": "completed", "attempt": 1, "duration_s": 0.01},
    ],
}
DIFFERENCE: Final[_Json] = {
    "a": EXECUTION_ID,
    "b": "019a0000-0000-7000-8000-000000000003",
    "status": ["completed", "completed"],
    "duration_s": [0.02, 0.01],
    "usage": [_NO_USAGE, _NO_USAGE],
    "counts": {"same": 1, "changed": 1, "only_a": 0, "only_b": 0},
    "nodes": [
        {
            "path": "note",
            "change": "changed",
            "status": ["completed", "completed"],
            "duration_s": [0.01, 0.01],
            "usage": [_NO_USAGE, _NO_USAGE],
            "written": ["data.text"],
            "outputs": {
                "output": [
                    {"type": "text", "value": _RESULTS["note"]},
                    {"type": "text", "value": "A note: Water boils at 100 °C."},
                ]
            },
            "result": "@@ -1 +1 @@\n-Note: Water boils at 100 °C.\n+A note: Water boils at 100 °C.",
        }
    ],
    "left_off": 0,
}
LEGACY_STATUS: Final[_Json] = {
    **_ENDED_FIELDS,
    "node_states": EXECUTION["node_states"],
    "logs": _LOGS,
}
LEGACY_RESULT: Final[_Json] = {
    **_ENDED_FIELDS,
    "node_results": [
        {
            "node_id": node["id"],
            "name": node["name"],
            "status": "completed",
            "result": _RESULTS[node["id"]],
            "error": None,
            "execution_time": 0.01,
        }
        for node in GRAPH["nodes"]
    ],
    "execution_logs": _LOGS,
    **_TIMES,
}

PROVIDERS: Final[_Json] = {
    "providers": ["openai"],
    "default_models": {"openai": "gpt-4o-mini"},
    "models": {"openai": ["gpt-4o-mini"]},
    "details": [
        {
            "name": "openai",
            "kind": "openai",
            "available": True,
            "reason": "OPENAI_API_KEY is set",
            "how_to_enable": "",
            "models": ["gpt-4o-mini"],
            "default_model": "gpt-4o-mini",
            "open_models": True,
            "download": None,
        }
    ],
}
MCP_SERVERS: Final[_Json] = {"servers": [{"name": "tickets", "kind": "stdio"}]}
_PORT: Final[_Json] = {
    "name": "input",
    "type": "any",
    "label": "Data",
    "channel": "flow",
    "multiple": True,
    "required": False,
    "side": "left",
    "color": "#5c6874",
    "shape": "circle",
}
_OUTPUT_PORT: Final = _PORT | {
    "name": "output", "type": "text", "multiple": False, "side": "right", "color": "#2457d0"
}  # fmt: skip
NODE_TYPES: Final[_Json] = {
    "node_types": [
        {
            "node_type": "text",
            "purpose": "Give a fixed text or a template filled from earlier results.",
            "summary": "Give a text, with parts from earlier steps.",
            "inputs": [_PORT],
            "outputs": [_OUTPUT_PORT],
            "entry": False,
            "executes": True,
            "materializes": False,
            "effect": "none",
            "template_fields": ["text"],
            "chooses": False,
            "version": 1,
            "reads_goal": False,
            "schema": {"type": "object", "properties": {"text": {"type": "string"}}},
            "example": {
                "nodes": [{"id": "hello", "type": "text", "data": {"text": "Hello."}}],
                "edges": [],
            },
        }
    ],
    "socket_types": [
        {
            "type": "text",
            "label": "Text",
            "color": "#2457d0",
            "dark_color": "#8fb1ff",
            "shape": "circle",
            "accepts": ["any", "boolean", "integer", "number", "json"],
        }
    ],
}
TOOLS: Final[_Json] = {
    "tools": [
        {
            "name": "look_up_order",
            "description": "Return the state of an order.",
            "effect": "read",
            "approval": "never",
            "timeout_s": None,
            "parameters": {
                "type": "object",
                "properties": {"number": {"type": "string"}},
                "required": ["number"],
                "additionalProperties": False,
            },
            "origin": {"kind": "module", "name": "shop_tools"},
        }
    ]
}
LIMITS: Final[_Json] = {
    "limits": [
        {
            "name": "page_items",
            "value": 200,
            "default": 200,
            "hard_cap": 1000,
            "unit": "count",
            "what": "Items on one page of a list.",
            "variable": "PLANWAVE_LIMIT_PAGE_ITEMS",
        }
    ]
}


def success(
    shape: type, description: str, example: Mapping[str, Any], status: int = 200
) -> dict[int | str, _Json]:
    """Return OpenAPI ``responses`` for the successful response of a route.

    The schema of the shape is made with the document (``openapi.py``). What FastAPI calls the response
    model would be made at each start of the service, of each route anew.
    """
    content = {"application/json": {"schema": schema_of(shape), "example": example}}
    return {status: {"description": description, "content": content}}


def schema_of(shape: type) -> dict[str, str]:
    """Return the reference to the schema of a shape."""
    return {"$ref": f"#/components/schemas/{shape.__name__}"}


_FLOW_FIELDS: Final[dict[str, Any]] = {
    "plan_id": FLOW_ID,
    "name": "Note",
    "title": "A note about water",
    "description": "A note about water",
    "revision": 1,
    "live_revision": 1,
    "draft": None,
    "created_at": TIME,
    "updated_at": TIME,
    "published": ["model"],
}
FLOW: Final = {**_FLOW_FIELDS, "hash": HASH, "inputs": PLAN["inputs"], "graph": GRAPH}
FLOWS: Final = {
    "flows": [{**_FLOW_FIELDS, "updated_by": {"kind": "operator"}, "node_count": 2}],
    "next_cursor": None,
}
