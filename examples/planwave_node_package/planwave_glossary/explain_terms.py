"""``explain-terms``: what the terms of a text mean, told as they are found. A streamed event."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import planwave
from planwave_glossary.glossary import Lexicon


class ExplainTermsData(planwave.NodeData):
    """How it is written."""

    bullet: str = "- "


class ExplainTerms(planwave.NodeType):
    """Streams a line for every term, and says how far it is."""

    node_type = "explain-terms"
    purpose = "Explain the terms of a text that a linked glossary knows, one line each."
    Data = ExplainTermsData
    inputs = (
        planwave.Port("input", "text", multiple=True, required=True),
        planwave.Port("glossary", "glossary", channel="link", multiple=True, required=True),
    )
    outputs = (planwave.Port("output", "text"),)

    async def run(
        self, data: ExplainTermsData, inputs: planwave.Inputs, context: planwave.FlowContext
    ) -> AsyncGenerator[planwave.NodeEvent | str]:
        """Look every term up in every glossary."""

        def said(event_type: str, told: object) -> planwave.NodeEvent:
            return planwave.NodeEvent(
                context.node_id, self.node_type, event_type, context.run_id, told
            )

        lexicons: list[Lexicon] = await context.runtime.resolve_links(context.node_id, "glossary")
        text = inputs.text("input")
        found = [pair for lexicon in lexicons for pair in lexicon.found_in(text)]
        lines: list[str] = []
        for done, (term, meaning) in enumerate(found, 1):
            lines.append(f"{data.bullet}{term}: {meaning}\n")
            yield said("delta", {"text": lines[-1]})  # shown at once, never stored
            yield said("progress", {"done": done, "of": len(found)})  # an event like any other
        yield "".join(lines)
