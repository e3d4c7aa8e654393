"""``sign-off``: wait until a person has put their name under a text. An approval."""

from __future__ import annotations

from typing import Any

import planwave

FORM = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 1}},
    "additionalProperties": False,
}


class SignOffData(planwave.NodeData):
    """The question and its actions."""

    question: str = planwave.template("Do you sign this?")


class SignOff(planwave.ResumableType):
    """Passes its input on through ``signed``, with a name under it, or through ``refused``."""

    node_type = "sign-off"
    purpose = "Wait until a person signs the input or refuses to."
    Data = SignOffData
    inputs = (planwave.Port("input", "text", multiple=True, required=True),)
    outputs = (planwave.Port("signed", "text"), planwave.Port("refused", "text"))
    chooses = True

    async def run(
        self, data: SignOffData, inputs: planwave.Inputs, context: planwave.FlowContext
    ) -> planwave.Suspension:
        """Ask. The node holds nothing while it waits, and a restart changes nothing about it."""
        text = inputs.text("input")
        request = {
            "kind": "approval",
            "prompt": data.question,
            "actions": ["sign", "refuse"],
            "form": FORM,
            "value": text,
        }
        return planwave.Suspension(request, state={"text": text})

    async def on_answer(
        self,
        data: SignOffData,
        inputs: planwave.Inputs,
        context: planwave.FlowContext,
        state: Any,
        answer: Any,
    ) -> planwave.ExecutionResult:
        """Go on with the answer; a service has held it against actions and form before."""
        text = state["text"]
        if answer["decision"] == "refuse":
            return planwave.ExecutionResult({"refused": planwave.DataValue("text", text)})
        name = (answer.get("form") or {}).get("name")
        if not name:
            raise planwave.NodeError(
                "nobody has put their name under it",
                code="no-name",
                hint='answer with {"decision": "sign", "form": {"name": …}}',
            )
        signed = f"{text}\nSigned: {name}"
        return planwave.ExecutionResult({"signed": planwave.DataValue("text", signed)})
