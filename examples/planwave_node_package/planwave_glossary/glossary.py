"""``glossary``: terms and what they mean, for nodes that look them up. A link artefact."""

from __future__ import annotations

import re
from dataclasses import dataclass

import planwave


@dataclass(frozen=True)
class Lexicon:
    """The artefact: an object of this process, handed over as it is and never stored."""

    terms: dict[str, str]

    def found_in(self, text: str) -> list[tuple[str, str]]:
        """Return the known terms of a text with their meaning, in order of appearance."""
        known = {term.casefold(): (term, meaning) for term, meaning in self.terms.items()}
        words = dict.fromkeys(re.findall(r"[\w-]+", text.casefold()))
        return [known[word] for word in words if word in known]


class GlossaryData(planwave.NodeData):
    """The terms."""

    terms: dict[str, str]


class Glossary(planwave.LinkType):
    """Makes a ``Lexicon``, once for all nodes that are linked to it."""

    node_type = "glossary"
    purpose = "Hold terms and their meaning; link it to nodes that look terms up."
    Data = GlossaryData
    inputs = ()
    outputs = (planwave.Port("glossary", "glossary", channel="link"),)

    async def make(
        self, data: GlossaryData, inputs: planwave.Inputs, context: planwave.FlowContext
    ) -> Lexicon:
        """Make the lexicon."""
        return Lexicon(data.terms)
