"""The components that have a counterpart: each type, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from planwave.interop.importing.langflow.batches import batch_run
from planwave.interop.importing.langflow.braces import read_braces
from planwave.interop.importing.langflow.flow import LINKS, Component, Plug, ValueKind
from planwave.interop.importing.langflow.models import (
    FUNCTIONS,
    PROVIDER_OF_COMPONENT,
    agent,
    language_model,
    offered_function,
    read_page,
    structured_output,
    web_search,
)
from planwave.interop.importing.langflow.routers import conditional_router, smart_router
from planwave.interop.importing.templates import inserted, literal, path, quoted

LOOPS: Final = frozenset({"LoopComponent", "Loop"})
"""Types of the loop, which has a module of its own."""
SEARCHES: Final = frozenset(
    {"UnifiedWebSearch", "WebSearchComponent", "WebSearchNoAPI", "DuckDuckGoSearchComponent"}
)


def _chat_input(component: Component) -> None:
    """Become a ``chat_start``: the text in the editor is the message of a run that brings none."""
    if component.wire("input_value") is not None:
        component.lose("a wire leads to it: it is no beginning", "", "input_value")
    message = component.template("input_value")
    main = component.becomes("chat_start", {"message": message} if message else {})
    component.outputs["message"] = Plug(main, "message")
    if component.is_filled("files"):
        component.node.change("the files in its form are left out", component.pointer("files"))
    if component.text("sender") not in ("", "User"):
        component.node.change("its message is one of the user", component.pointer("sender"))


def _text_input(component: Component) -> None:
    """Become a ``start``, or a ``text`` where a run begins with a message of a chat or a wire leads to it."""
    wire = component.wire("input_value")
    if wire is not None:
        main = component.becomes("text", {"text": inserted("input | string")})
        component.takes("input_value", main, "input", "text")
    elif component.is_beside_chat:
        main = component.becomes("text", {"text": component.template("input_value")})
    else:
        main = component.becomes("start", {"initialInput": component.text("input_value")})
    component.outputs["text"] = Plug(main, "output")


def _output(component: Component) -> None:
    """Become an ``end``."""
    main = component.becomes("end")
    wire = component.takes("input_value", main, "input", "text", "data", "table", "any")
    if wire is None:
        component.lose("no wire leads to it", "", "input_value")
    elif wire.kind != "text":
        component.node.change(
            "the result is the data themselves; there they were written as a text"
        )
    component.outputs["message"] = component.outputs["text"] = Plug(main, "output")


def _prompt(component: Component) -> None:
    """Become a ``parser`` with a variable for each name in braces."""
    braces = read_braces(component.text("template"), double=component.flag("use_double_brackets"))
    for part in braces.lost:
        component.lose("this is more than the name of a variable", part, "template")
    if braces.odd:
        component.node.change(
            "braces in it that hold no name stay as they are", component.pointer("template")
        )
    main = component.becomes("parser")
    values: dict[str, str] = {}
    for number, name in enumerate(braces.names):
        handle = name if name.isascii() and name not in _TAKEN else f"variable_{number + 1}"
        if component.takes(name, main, handle, "text") is not None:
            values[name] = inserted(path("inputs", [handle]))
        elif name in component.fields:
            values[name] = component.template(name)
        else:
            component.lose(f"the variable {name!r} has no field", name, "template")
    main.node["data"]["template"] = braces.rendered(lambda name: values.get(name, ""))
    component.outputs["prompt"] = Plug(main, "output")


_TAKEN: Final = frozenset({"input", "inputs", "nodes", "run", "item", "index", "value", "loop"})
"""Names that templates have for something else."""


def _parser(component: Component) -> None:
    """Become a ``parser`` that fills in the fields of what arrives, for each row of a table."""
    main = component.becomes("parser", {"template": ""})
    wire = component.takes("input_data", main, "input", "text", "data", "table")
    component.outputs["parsed_text"] = Plug(main, "output")
    if wire is None:
        component.lose("no wire leads to it", "", "input_data")
        return
    if component.text("mode") not in ("", "Parser"):
        if wire.kind != "text":
            component.lose("data as a text of their own form", component.text("mode"), "mode")
        main.node["data"]["template"] = inserted("input | string")
        return
    braces = read_braces(component.text("pattern"))
    for part in braces.lost or (["{"] if braces.odd else []):
        component.lose("this is more than the name of a field", part, "pattern")
    if wire.kind == "text" and set(braces.names) - {"text"}:
        component.lose("a message has a text alone", component.text("pattern"), "pattern")
    template = braces.rendered(lambda name: _FIELD[wire.kind](name))
    if wire.kind == "table":
        between = inserted(f'"" if loop.last else {quoted(component.text("sep"))}')
        template = f"{{% for row in input %}}{template}{between}{{% endfor %}}"
    if wire.kind != "text" and braces.names:
        component.node.change(
            "values that are no text are written as JSON; there as Python writes them",
            component.pointer("pattern"),
        )
    main.node["data"]["template"] = template


_FIELD: Final[Mapping[ValueKind, Callable[[str], str]]] = {
    "text": lambda name: inserted("input | string"),
    "data": lambda name: inserted(f'{path("input", [name])} | default("") | string'),
    "table": lambda name: inserted(f"{path('row', [name])} | string"),
    "any": literal,
    "tool": literal,
    "model": literal,
}
"""What stands for a name in a pattern, by what arrives."""


def _type_converter(component: Component) -> None:
    """Become a ``transform`` where it is certain what a value is in another type."""
    main = component.becomes("transform")
    wire = component.takes("input_data", main, "input", "text", "data", "table")
    used = sorted({each.out for each in component.leaving})
    if wire is None or len(used) != 1 or (wire.kind, used[0]) not in _CONVERSIONS:
        kind = "nothing" if wire is None else wire.kind
        component.lose("how it converts this is not certain", f"{kind} → {', '.join(used)}")
        return
    if component.flag("auto_parse"):
        component.lose("it parses texts by itself", "true", "auto_parse")
    main.node["data"]["expression"] = inserted(_CONVERSIONS[wire.kind, used[0]])
    component.outputs[used[0]] = Plug(main, "output")


_CONVERSIONS: Final[Mapping[tuple[str, str], str]] = {
    ("text", "message_output"): "input",
    ("data", "data_output"): "input",
    ("table", "dataframe_output"): "input",
    ("data", "dataframe_output"): "[input]",
    ("text", "data_output"): '{"text": input}',
    ("text", "dataframe_output"): '[{"text": input}]',
}
"""The value that a converter gives, by what arrives and the output that is used."""

KINDS: Final[Mapping[str, Callable[[Component], None]]] = MappingProxyType(
    {
        "ChatInput": _chat_input,
        "TextInput": _text_input,
        "TextInputComponent": _text_input,
        "ChatOutput": _output,
        "TextOutput": _output,
        "TextOutputComponent": _output,
        "Prompt": _prompt,
        "Prompt Template": _prompt,
        "PromptComponent": _prompt,
        "ParserComponent": _parser,
        "parser": _parser,
        "ConditionalRouter": conditional_router,
        "SmartRouter": smart_router,
        "TypeConverterComponent": _type_converter,
        "Agent": agent,
        "StructuredOutput": structured_output,
        "StructuredOutputComponent": structured_output,
        "URLComponent": read_page,
        "BatchRunComponent": batch_run,
        **dict.fromkeys(FUNCTIONS, offered_function),
        **dict.fromkeys(SEARCHES, web_search),
        **dict.fromkeys(PROVIDER_OF_COMPONENT, language_model),
    }
)
"""What becomes of each type of component, but of loops."""


def is_known(kind: str) -> bool:
    """Return whether a type of component has a counterpart."""
    return kind in KINDS or kind in LOOPS


def is_constant(component: Component) -> bool:
    """Return whether it gives the same in each round of a loop, and may stand in its body."""
    only_links = bool(component.leaving) and all(wire.kind in LINKS for wire in component.leaving)
    return only_links or component.kind in _TEXTS


_TEXTS: Final = frozenset({"Prompt", "Prompt Template", "PromptComponent"})
