"""A file of another program in, a graph and a report out: ``import_text``. Pure; nothing is stored or run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from planwave.errors import GraphInvalid, InputError
from planwave.foreign_formats import (
    MERMAID,
    NOUNS,
    PLANWAVE,
    formats_of,
    is_flowchart,
    other_diagram,
    unwrap,
)
from planwave.graph.reading.document_text import parse_document_text
from planwave.interop.importing.conversion import Conversion
from planwave.interop.importing.headers import settle_headers
from planwave.interop.importing.secrets import without_secrets

if TYPE_CHECKING:
    from planwave.shapes.imports import ImportedDocument, ImportReport

MAX_SOURCE_BYTES: Final = 4 * 1024 * 1024
"""The largest file that is read; of YAML see ``document_text``. The largest of 700 public files that were measured has 0.9 MB: files of
other programs carry positions, forms and pictures beside the graph."""


class UnknownFormat(InputError):
    """A file has no format that can be imported, or several.

    Attributes:
        kinds: The formats that a person may name for it; empty where it is known to have none of them.
    """

    code = "unknown-format"

    def __init__(
        self, message: str, *, kinds: Sequence[str] = (), code: str | None = None, hint: str
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.kinds = tuple(kinds)


class Source(NamedTuple):
    """What a converter reads.

    Attributes:
        value: The document, parsed, without what its program puts around it, and without secrets; of a
            Mermaid flowchart its text.
        pointer: JSON pointer of the document in the file; prefix of every pointer of the report.
        write_code: Whether programs in the file become node types of a module (``Conversion.code``)
            in place of placeholders.
    """

    value: Any
    pointer: str
    write_code: bool


class Imported(NamedTuple):
    """A file of another program as a planwave graph.

    Attributes:
        document: ``{"nodes", "edges", "title"?, "user_prompt"?}``.
        report: What became of each part of the file.
        code: A Python module with the file's programs as node types, which the document names; "" where
            there are none. It is never loaded by the import.
    """

    document: ImportedDocument
    report: ImportReport
    code: str


_Converter = Callable[[Source], Conversion]
_CONVERTERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "agiraph": "planwave.interop.importing.agiraph",
        "agentflow": "planwave.interop.importing.agentflow",
        "dify": "planwave.interop.importing.dify.convert",
        "covalt": "planwave.interop.importing.covalt.convert",
        "flowise": "planwave.interop.importing.flowise.convert",
        "magic-agents": "planwave.interop.importing.magic_agents.convert",
        "sandcastle": "planwave.interop.importing.sandcastle.workflow",
        "langflow": "planwave.interop.importing.langflow.convert",
        MERMAID: "planwave.interop.importing.mermaid.flowchart",
        "n8n": "planwave.interop.importing.n8n.converter",
        PLANWAVE: "planwave.interop.importing.own",
    }
)
"""The module of each format, whose function ``convert`` makes a conversion of a source."""
KINDS: Final = tuple(_CONVERTERS)
"""The formats that can be imported."""


def import_text(
    text: str | bytes,
    kind: str | None = None,
    *,
    write_code: bool = False,
    provider: str | None = None,
    model: str | None = None,
) -> Imported:
    """Convert a file of another program to a planwave graph.

    Args:
        text: JSON, YAML or Mermaid, at most ``MAX_SOURCE_BYTES``.
        kind: One of ``KINDS``; None to tell it from the shape of the document.
        write_code: Whether programs in the file become node types of a module.
        provider: A provider in place of each that the file names; None to keep them.
        model: A model of that provider; None for its default.

    Raises:
        UnknownFormat: ``unknown-format``, ``ambiguous-format``.
        InputError: ``unknown-kind``; where the text is none of the three: ``invalid-json``,
            ``invalid-yaml``, ``limit-exceeded`` and others of ``parse_strict_json``.
    """
    if kind is not None and kind not in _CONVERTERS:
        raise InputError(
            f"{kind!r} is no format that can be imported", code="unknown-kind", hint=_KNOWN
        )
    characters = text_of(text)
    found, value, pointer = _located(characters, kind)
    clean, removed = without_secrets(value, pointer)
    module = import_module(_CONVERTERS[found])  # Lazy: an import reads one format
    convert: _Converter = module.convert
    conversion = convert(Source(clean, pointer, write_code))
    if provider is not None:
        conversion.use_provider(provider, model)
    for node in conversion.nodes:
        settle_headers(node)
    document, report = conversion.finish(characters, removed)
    return Imported(document, report, conversion.code)


def _located(text: str, kind: str | None) -> tuple[str, Any, str]:
    """Return the format of a text, the document in it, and the JSON pointer of that.

    Raises:
        InputError: As ``import_text``.
    """
    if kind == MERMAID or (kind is None and is_flowchart(text)):
        return MERMAID, text, ""
    if kind is None and (diagram := other_diagram(text)) is not None:
        raise UnknownFormat(f"a Mermaid {diagram} is no plan: only flowcharts are", hint=_KNOWN)
    value, pointer = unwrap(_parsed(text))
    if "dify" in formats_of(value) and isinstance(value.get("data"), str):
        # The answer of its export API.
        value, pointer = _parsed(value["data"]), f"{pointer}/data"
    found = kind or _kind_of(value)
    if not isinstance(value, dict):
        raise InputError(f"this is not {NOUNS[found]}, which is an object", code="unknown-format")
    return found, cast("dict[str, Any]", value), pointer


def _parsed(text: str) -> Any:
    """Parse a text that is JSON or YAML.

    Raises:
        InputError: It is neither; the message is about the one that it begins as.
    """
    try:
        return parse_document_text(text, max_bytes=MAX_SOURCE_BYTES)
    except GraphInvalid as error:
        first = error.diagnostics[0]
        raise InputError(error.message, code=first.code, hint=first.hint) from error


def text_of(text: str | bytes) -> str:
    """Return the text of a file, without the mark of its byte order.

    Raises:
        InputError: ``invalid-text``: it is not UTF-8.
    """
    if isinstance(text, str):
        return text.removeprefix("\ufeff")
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"the file is not UTF-8: byte {error.start} is {error.object[error.start]:#04x}",
            code="invalid-text",
            hint="save it as UTF-8",
        ) from error


def _kind_of(value: Any) -> str:
    """Return the one format that a document has.

    Raises:
        UnknownFormat: It has none, or several.
    """
    kinds = formats_of(value)
    if len(kinds) == 1 and kinds[0] in _CONVERTERS:
        return kinds[0]
    if not kinds:
        raise UnknownFormat(
            "this is no file of a program that is known here", kinds=KINDS, hint=_KNOWN
        )
    named = " or ".join(NOUNS[kind] for kind in kinds)
    if len(kinds) == 1:
        raise UnknownFormat(f"this is {named}, which cannot be imported", hint=_KNOWN)
    raise UnknownFormat(
        f"this may be {named}",
        kinds=[kind for kind in kinds if kind in _CONVERTERS],
        code="ambiguous-format",
        hint=f"name the kind: {', '.join(kinds)}",
    )


_KNOWN: Final = f"known: {', '.join(NOUNS[kind].partition(' ')[2] for kind in KINDS)}"
