"""``send_message``: tell the caller something while the run goes on."""

from __future__ import annotations

from planwave.events.types import MESSAGE
from planwave.graph.inputs import Inputs
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, DEFAULT_TARGET_HANDLE, Json
from planwave.graph.protocols import ExecutionResult, FlowContext, NodeEvent
from planwave.nodes.authoring.node_type import NodeData, NodeType, pass_through, template


class SendMessageData(NodeData):
    """The message: a text, by default the input, and any other JSON for the caller."""

    message: str | None = template(None, description="The text; without one, the input.")
    extras: Json = template(None, description="Any other value for the caller.")


class SendMessage(NodeType):
    """Sends ``message`` and ``extras`` to the caller, and passes its input on unchanged.

    The message is a stored ``node.event`` of the type ``message``, in one commit with the node's end:
    subscribers see the message once, also if the node runs again after a crash. Nothing leaves the
    execution, so its effect is ``none``.
    """

    node_type = "send_message"
    purpose = "Tell the caller a text, and extras, while the run goes on; passes its input on."
    summary = "Show a message while the run goes on."
    Data = SendMessageData
    plan_fields = ("message", "extras")
    fails_permanently = True

    async def run(
        self, data: SendMessageData, inputs: Inputs, context: FlowContext
    ) -> ExecutionResult:
        text = inputs.text(DEFAULT_TARGET_HANDLE) if data.message is None else data.message
        message: dict[str, Json] = {"text": text, "extras": data.extras}
        event = NodeEvent(context.node_id, self.node_type, MESSAGE, context.run_id, message)
        return ExecutionResult({DEFAULT_SOURCE_HANDLE: pass_through(inputs)}, [event])
