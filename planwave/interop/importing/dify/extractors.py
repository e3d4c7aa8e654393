"""Steps in which a model chooses or extracts: question-classifier and parameter-extractor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from planwave.interop.importing.dify.models import model_fields, needs_provider
from planwave.interop.importing.dify.policies import offer_failure, policy_of
from planwave.interop.importing.dify.steps import Step
from planwave.interop.importing.dify.values import Read
from planwave.interop.importing.drafts import new_edge
from planwave.interop.importing.reading import list_of, object_of, objects_in, text_of
from planwave.interop.importing.templates import inserted, literal, output_of, path, quoted


def question_classifier(step: Step) -> None:
    """Become an ``llm`` that names a class and a ``switch`` among the classes."""
    classes = [
        (text_of(each, "id"), text_of(each, "name"))
        for _, each in objects_in(step.data, "classes")
        if text_of(each, "id")
    ]
    query = step.read(step.data.get("query_variable_selector"), "/query_variable_selector")
    if not classes:
        step.lose("it has no classes", "", "/classes")
    lines = [f"{literal(each)}: {step.text(name, '/classes')}" for each, name in classes]
    instruction = step.text(text_of(step.data, "instruction"), "/instruction")
    system = "\n".join(
        [
            "Choose the class that the text of the user belongs to. The classes, each with its id:",
            *lines,
            *([f"Also note: {instruction}"] if instruction.strip() else []),
            "Reply with the id of one class and nothing else.",
        ]
    )
    fields = model_fields(step, object_of(step.data, "model"))
    prompt = step.printed(query, "/query_variable_selector") if query else ""
    main = step.becomes(
        "llm", {**fields, "system": system, "prompt": prompt}, policy_of(step, "class_name")
    )
    needs_provider(step, main)
    chosen = f'{output_of(main.id)}.strip(" \\n\\t.:#*\\"\'")'
    cases = [each for each, _ in classes]
    choice = step.add(
        "switch", {"value": inserted(chosen), "cases": list(map(literal, cases))}, "choice"
    )
    new_edge(main.graph, main.id, choice.id)
    step.node.change(
        "the prompt is planwave's; a reply that names no class counts as the first one"
    )
    if object_of(step.data, "memory"):
        step.node.change("it is not shown earlier turns of the chat", f"{step.pointer}/memory")
    step.exits = {each: [(choice, f"case-{i}")] for i, each in enumerate(cases)}
    if cases:
        step.exits[cases[0]].append((choice, "default"))
        _offer_class(step, classes, chosen)
    offer_failure(step)


def _offer_class(step: Step, classes: Sequence[tuple[str, str]], chosen: str) -> None:
    """Offer the name and the id of the class; without one that is known, those of the first class."""
    names = ", ".join(f"{quoted(each)}: {quoted(name)}" for each, name in classes)
    known = ", ".join(quoted(each) for each, _ in classes)
    first_id, first_name = map(quoted, classes[0])
    step.outputs["class_name"] = Read(f"{{{names}}}.get({chosen}, {first_name})", kind="text")
    step.outputs["class_id"] = Read(
        f"({chosen} if {chosen} in [{known}] else {first_id})", kind="text"
    )


_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "string": {"type": "string"},
    "select": {"type": "string"},
    "number": {"type": "number"},
    "bool": {"type": "boolean"},
    "boolean": {"type": "boolean"},
    "object": {"type": "object"},
    "array": {"type": "array"},
    "array[string]": {"type": "array", "items": {"type": "string"}},
    "array[number]": {"type": "array", "items": {"type": "number"}},
    "array[object]": {"type": "array", "items": {"type": "object"}},
    "array[boolean]": {"type": "array", "items": {"type": "boolean"}},
}
"""Types of extracted parameters as JSON Schema."""
_EMPTY: Final = {"string": '""', "number": "0", "boolean": "false", "object": "{}", "array": "[]"}
"""What a parameter has that the model did not find, by its JSON type."""


def parameter_extractor(step: Step) -> None:
    """Become an ``agent`` whose reply has to fit the schema of the parameters."""
    query = step.read(step.data.get("query"), "/query")
    instruction = step.text(text_of(step.data, "instruction"), "/instruction")
    properties: dict[str, Any] = {}
    required: list[str] = []
    for number, each in objects_in(step.data, "parameters"):
        name, pointer = text_of(each, "name"), f"/parameters/{number}"
        schema = _SCHEMAS.get(text_of(each, "type"))
        if schema is None or not name:
            step.lose("the type of this parameter is not known", text_of(each, "type"), pointer)
            continue
        properties[name] = _property(each, schema)
        if each.get("required") is True:
            required.append(name)
    data = {
        **model_fields(step, object_of(step.data, "model")),
        "systemPrompt": "\n".join(
            ["Extract the parameters from the text of the user.", *filter(str.strip, [instruction])]
        ),
        "userPrompt": step.printed(query, "/query") if query else "",
        "outputSchema": {"type": "object", "properties": properties, "required": required},
    }
    main = step.becomes("agent", data, policy_of(step, ""))
    needs_provider(step, main)
    for name, schema in properties.items():
        empty = _EMPTY[schema["type"]]
        value = path(output_of(main.id), [name])
        expression = value if name in required else f"{value} | default({empty}, true)"
        kind = {"string": "text", "array": "list"}.get(schema["type"], "any")
        step.outputs[name] = Read(expression, kind=cast("Any", kind))
    step.outputs["__is_success"] = Read("1", kind="whole")
    step.node.change(
        "the prompt is planwave's; where the model finds nothing that fits, the step fails"
    )
    if object_of(step.data, "memory") or object_of(step.data, "vision").get("enabled") is True:
        step.node.change("it is shown neither earlier turns nor images")
    offer_failure(step)


def _property(parameter: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(schema)
    if description := text_of(parameter, "description"):
        made["description"] = description
    options = [option for option in list_of(parameter, "options") if isinstance(option, str)]
    if text_of(parameter, "type") == "select" and options:
        made["enum"] = list(dict.fromkeys(options))
    return made
