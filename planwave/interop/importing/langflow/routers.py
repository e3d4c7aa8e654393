"""Components that choose where a message goes: by a comparison of texts, or by a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from planwave.interop.importing.drafts import Target, new_edge
from planwave.interop.importing.langflow.braces import read_braces
from planwave.interop.importing.langflow.flow import Component, Plug
from planwave.interop.importing.langflow.models import model_settings, settle_model
from planwave.interop.importing.reading import objects_in, text_of
from planwave.interop.importing.templates import inserted, literal, output_of, quoted

_TRUE, _FALSE, _ELSE = "true_result", "false_result", "default_result"
_OF_TEXT: Final[Mapping[str, Callable[[str, str], str]]] = {
    "equals": lambda text, other: f"{text} == {other}",
    "not equals": lambda text, other: f"{text} != {other}",
    "contains": lambda text, other: f"{other} in {text}",
    "starts with": lambda text, other: f"{text}.startswith({other})",
    "ends with": lambda text, other: f"{text}.endswith({other})",
}
_OF_NUMBER: Final[Mapping[str, str]] = {
    "less than": "<", "less than or equal": "<=", "greater than": ">", "greater than or equal": ">=",
}  # fmt: skip
_MOST_ROUTES: Final = 100


def conditional_router(component: Component) -> None:
    """Become a ``conditional`` that passes the message on, or a text of the form in its place."""
    main = component.becomes("conditional")
    if component.takes("input_text", main, "input", "text") is None:
        component.lose("no wire leads to its text", "", "input_text")
    for name in ("match_text", "true_case_message", "false_case_message"):
        if (wire := component.wire(name)) is not None:
            component.lose("what it compares or passes on comes in over a wire", wire.source.id, name)  # fmt: skip
    test = _comparison(component)
    main.node["data"] |= {
        "condition": inserted(f"{quoted(_TRUE)} if {test} else {quoted(_FALSE)}"),
        "outputHandles": [_TRUE, _FALSE],
    }
    for handle, name in ((_TRUE, "true_case_message"), (_FALSE, "false_case_message")):
        component.outputs[handle] = Plug(main, handle)
        if text := component.template(name):
            _say(component, main, handle, text)


def _comparison(component: Component) -> str:
    operator, other = component.text("operator") or "equals", component.text("match_text")
    text = "(input | string)"
    if operator in _OF_TEXT:
        if component.fields.get("case_sensitive") and not component.flag("case_sensitive"):
            return _OF_TEXT[operator](f"({text} | lower)", f"({quoted(other)} | lower)")
        return _OF_TEXT[operator](text, quoted(other))
    if operator not in _OF_NUMBER:
        component.lose("this comparison has no counterpart", operator, "operator")
        return "false"
    try:
        number = float(other)
    except ValueError:
        return "false"  # there it is no number either
    if not abs(number) < 1e308:
        component.lose("this number has no counterpart", other, "match_text")
        return "false"
    component.node.change("a text that is no number fails the step here; there the comparison is false")  # fmt: skip
    return f"({text} | float) {_OF_NUMBER[operator]} {number!r}"


def _say(component: Component, main: Target, handle: str, text: str, part: str = "") -> None:
    """Let a text go out of an output in place of what comes in."""
    said = component.adds("text", {"text": text}, part or handle)
    new_edge(component.graph, main.id, said.id, handle)
    component.outputs[part or handle] = Plug(said, "output")


def smart_router(component: Component) -> None:
    """Become an ``llm`` that names a route, with the prompt that is sent there, and a ``switch`` among them."""
    entry = component.becomes("text", {"text": inserted("input | string")})
    if component.takes("input_text", entry, "input", "text") is None:
        component.lose("no wire leads to its text", "", "input_text")
    for name in ("message", "routes", "custom_prompt"):
        if (wire := component.wire(name)) is not None:
            component.lose("what it chooses from comes in over a wire", wire.source.id, name)
    rows = [row for _, row in objects_in({"rows": component.value("routes")}, "rows")]
    names = [text_of(row, "route_category") for row in rows]
    if not 0 < len(rows) <= _MOST_ROUTES or not all(name.strip() == name != "" for name in names):
        component.lose("its routes have no names of their own", ", ".join(names), "routes")
    asked = output_of(entry.id)
    prompt = _route_prompt(component, rows, names, inserted(asked))
    model = component.adds("llm", {**model_settings(component), "prompt": prompt}, "ask")
    settle_model(component, model)
    new_edge(component.graph, entry.id, model.id)
    reply = f"{output_of(model.id)}.strip().strip({quoted(chr(34))})"
    first = list(dict.fromkeys(name.lower() for name in names))
    choice = component.adds("switch", {"value": inserted(f"{reply} | lower"), "cases": list(map(literal, first)) or ["-"]}, "choice")  # fmt: skip
    new_edge(component.graph, model.id, choice.id)
    said = component.template("message") if component.text("message").strip() else ""
    for number, row in enumerate(rows):
        own = text_of(row, "output_value")
        own = literal(own) if own.strip() and own.strip().lower() != "none" else ""
        handle = f"case-{first.index(names[number].lower())}"
        _say(component, choice, handle, said or own or inserted(asked), f"category_{number + 1}_result")  # fmt: skip
    if len(first) != len(names):
        component.lose("two of its routes have one name", ", ".join(names), "routes")
    if component.flag("enable_else_output"):
        _say(component, choice, "default", said or inserted(asked), _ELSE)


def _route_prompt(
    component: Component, rows: list[Mapping[str, Any]], names: list[str], asked: str
) -> str:
    lines = [
        f'- "{name}": {about}' if (about := text_of(row, "route_description")).strip() else f'- "{name}"'
        for name, row in zip(names, rows, strict=True)
    ]  # fmt: skip
    listed = literal("\n".join(lines))
    prompt = (
        "You are a text classifier. Given the following text and categories, determine which category best matches "
        f'the text.\n\nText to classify: "{asked}"\n\nAvailable categories:\n{listed}\n\nRespond with ONLY the exact '
        'category name that best matches the text. If none match well, respond with "NONE".\n\nCategory:'
    )
    more = component.text("custom_prompt")
    if not more.strip():
        return prompt
    braces = read_braces(more)
    for part in [*braces.lost, *(set(braces.names) - {"input_text", "routes"})]:
        component.lose("this is more than the text and the routes", part, "custom_prompt")
    quoted_names = literal(", ".join(f'"{name}"' for name in names))
    values = {"input_text": asked, "routes": quoted_names}
    return f"{prompt}\n\nAdditional Instructions:\n{braces.rendered(lambda name: values.get(name, ''))}"  # fmt: skip
