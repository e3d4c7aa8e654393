"""The variables that templates refer to: their names, and what a reference says about them."""

from __future__ import annotations

from typing import Final, NamedTuple

NODES: Final = "nodes"
ROOT_VARIABLES: Final = ("input", "inputs", NODES, "trigger", "goal", "PREVIOUS_OUTPUT")
"""Variables of every template, besides the node's own input handles."""

FLOW_INPUTS: Final = "inputs of the flow"
"""Under this key the variables of a run hold the inputs of its flow by name; no template can name it."""

FUNCTIONS: Final = ("range", "dict", "namespace")
"""Functions of every template."""


class VariableRef(NamedTuple):
    """One variable a template refers to.

    Attributes:
        root: One of ``ROOT_VARIABLES``, or the name of a bare variable.
        key: The node's id in ``nodes["id"]`` and ``nodes.id``, the handle in ``inputs.topic``; None
            if it is computed.
        pointer: JSON pointer of the field, relative to ``node.data``.
        guarded: Whether the template handles a missing variable: ``default``, ``is defined``.
        handle: The output in ``nodes["id"].output``; None if it is computed or not named.
    """

    root: str
    key: str | None
    pointer: str
    guarded: bool = False
    handle: str | None = None


class Variable(NamedTuple):
    """A variable reference without the pointer of its field."""

    name: str
    key: str | None = None
    guarded: bool = False
    handle: str | None = None
