"""Node types that explain the terms of a text and have it signed off.

``glossary`` holds terms and offers them to linked nodes, ``explain-terms`` looks them up
and streams what it finds, ``sign-off`` waits for a person.
"""

from planwave_glossary.explain_terms import ExplainTerms
from planwave_glossary.glossary import Glossary, Lexicon
from planwave_glossary.sign_off import SignOff

TYPES = [Glossary, ExplainTerms, SignOff]

__all__ = ["TYPES", "ExplainTerms", "Glossary", "Lexicon", "SignOff"]
