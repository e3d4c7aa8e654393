"""Tasks and goals: texts that name the inputs of their flow, and nothing else.

They are templates of the same language as those in data (``syntax.py``), of which only plain paths with
filters are taken: a task is rendered wherever it is read, without waiting for the render process.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple, NoReturn

from planwave.errors import TemplateError
from planwave.expressions.errors import (
    FORBIDDEN,
    LITERAL_HINT,
    UNDEFINED,
    byte_length,
    too_large,
)
from planwave.expressions.filters import UNDEFINED_VALUE
from planwave.expressions.json_text import Json, to_text
from planwave.expressions.paths import ValuePath, evaluate_path
from planwave.expressions.templates import DEFAULT_OUTPUT_BYTES, has_template

_RAW: Final = ("{% raw %}", "{% endraw %}")


class TaskTemplate(NamedTuple):
    """A task or goal that has braces, compiled.

    Attributes:
        parts: Literals, and paths whose roots are inputs of the flow.
        names: The inputs that it reads, in order.
    """

    parts: tuple[str | ValuePath, ...]
    names: tuple[str, ...]

    def render(self, inputs: Mapping[str, Json]) -> str:
        """Return the text for the inputs of one run; what they hold is not rendered again.

        Raises:
            TemplateError: ``template-undefined``: an input, or a part of it, has no value;
                ``template-too-large``.
        """
        texts: list[str] = []
        length = 0
        for part in self.parts:
            text = part if isinstance(part, str) else to_text(_evaluate(part, inputs))
            length += len(text)
            if length > DEFAULT_OUTPUT_BYTES:
                raise too_large(
                    "the rendered text", DEFAULT_OUTPUT_BYTES, length, "template_output_bytes"
                )
            texts.append(text)
        return "".join(texts)


def compile_task(text: str) -> TaskTemplate | None:
    """Compile a task or goal; return None for one without braces, which is itself.

    Raises:
        TemplateError: ``template-syntax``; ``template-forbidden`` for anything but names with filters.
    """
    if not has_template(text):
        return None
    # Lazy: test_building_and_running_a_graph_without_a_model_loads_no_sdk
    from planwave.expressions.syntax import expression_tokens, parse_template

    parse_template(text)  # finds what is wrong with its syntax
    parts: list[str | ValuePath] = []
    names: dict[str, None] = {}
    begin = None
    for token in expression_tokens(text):
        if token.kind == "variable_begin" and token.value == "{{":
            begin = token.end
        elif token.kind == "variable_end" and token.value == "}}":
            program = parse_template(f"{{{{{text[begin : token.start]}}}}}")
            parts += program.parts or _refuse()
            names |= dict.fromkeys(variable.name for variable in program.references)
            begin = None
        elif token.kind == "data":
            parts.append(text[token.start : token.end])
        elif begin is None and token.value not in _RAW:
            _refuse()
    return TaskTemplate(tuple(parts), tuple(names))


def _refuse() -> NoReturn:
    raise TemplateError(
        "a task or goal takes only the names of inputs in braces, such as {{ city }}",
        code=FORBIDDEN,
        hint=LITERAL_HINT,
    )


def check_task(
    text: str, names: Collection[str], *, max_bytes: int | None = None
) -> Iterator[TemplateError]:
    """Yield what is wrong with a task or goal of a flow that has these inputs.

    Args:
        text: The task or goal.
        names: The inputs of the flow.
        max_bytes: Limit on the UTF-8 length of a text with braces. None: no limit.
    """
    if not has_template(text):
        return
    if max_bytes is not None and (size := byte_length(text, max_bytes)) > max_bytes:
        yield too_large("the text", max_bytes, size, "template_bytes")
        return
    try:
        template = compile_task(text)
    except TemplateError as error:
        yield error
        return
    for name in () if template is None else template.names:
        if name not in names:
            yield _unknown(name, names)


def _unknown(name: str, names: Collection[str]) -> TemplateError:
    known = f"its inputs are {', '.join(names)}" if names else "it declares none"
    return TemplateError(
        f"{name!r} is no input of this flow: {known}",
        code=UNDEFINED,
        hint=f"declare the field {name!r} in the schema of the flow's start; what arrives at the node "
        f"is named in data.userPrompt instead; {LITERAL_HINT}",
    )


def _evaluate(path: ValuePath, inputs: Mapping[str, Json]) -> Json:
    return evaluate_path(
        path, None if path.root is None else inputs.get(path.root, UNDEFINED_VALUE)
    )
