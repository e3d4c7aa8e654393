"""Examples of triggers for the OpenAPI document; a test reads them with the models."""

from __future__ import annotations

from typing import Any, Final

from planwave.api.schemas.examples import EXECUTION_ID, FLOW_ID, TIME

TRIGGER_ID: Final = "019a0000-0000-7000-8000-00000000000c"
TRIGGER: Final[dict[str, Any]] = {
    "trigger_id": TRIGGER_ID,
    "kind": "webhook",
    "plan_id": FLOW_ID,
    "flow": "Note",
    "revision": None,
    "live_revision": 1,
    "node_id": "hook",
    "enabled": True,
    "problem": None,
    "created_at": TIME,
    "created_by": {"kind": "operator"},
    "details": {"path": f"/hooks/{TRIGGER_ID}"},
    "deliveries": [
        {
            "key": "msg_1",
            "received_at": TIME,
            "outcome": "started",
            "note": "",
            "execution_id": EXECUTION_ID,
        }
    ],
}
TRIGGERS: Final[dict[str, Any]] = {"triggers": [TRIGGER], "next_cursor": None}
PUBLICATION: Final[dict[str, Any]] = {
    "plan_id": FLOW_ID,
    "name": "Note",
    "model": True,
    "tool": False,
    "hooks": [{"trigger_id": TRIGGER_ID, "path": f"/hooks/{TRIGGER_ID}", "enabled": True}],
}
