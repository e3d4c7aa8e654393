"""The syntax of Mermaid flowcharts: steps with their shapes, lines with their labels, and what only styles them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, cast

from planwave.errors import GraphInvalid
from planwave.graph.reading.yaml_text import parse_yaml

_SHAPES: Final = (
    ("(((", (")))",), "circle"),
    ("((", ("))",), "circle"),
    ("([", ("])",), "stadium"),
    ("[[", ("]]",), "subroutine"),
    ("[(", (")]",), "database"),
    ("[/", ("/]", "\\]"), "parallelogram"),
    ("[\\", ("\\]", "/]"), "parallelogram"),
    ("{{", ("}}",), "hexagon"),
    ("(-", ("-)",), "round"),
    ("{", ("}",), "diamond"),
    ("[", ("]",), "box"),
    ("(", (")",), "round"),
    (">", ("]",), "flag"),
)
"""What stands around a label, the longer ones first, and the name of the shape."""
_NAMED_SHAPES: Final = {
    "diam": "diamond", "diamond": "diamond", "decision": "diamond", "question": "diamond",
    "stadium": "stadium", "pill": "stadium", "terminal": "stadium", "circle": "circle", "circ": "circle",
    "sm-circ": "circle", "start": "circle", "stop": "circle", "dbl-circ": "circle", "double-circle": "circle",
    "fr-circ": "circle", "hex": "hexagon", "hexagon": "hexagon", "prepare": "hexagon",
    "lean-r": "parallelogram", "lean-right": "parallelogram", "lean-l": "parallelogram",
    "lean-left": "parallelogram", "in-out": "parallelogram", "out-in": "parallelogram",
}  # fmt: skip
"""Shapes of ``id@{ shape: … }`` that mean more than a box."""
MAX_LINKS: Final = 20_000
"""Lines of a chart: ``a & b --> c & d`` are four, so that few characters could be a great many."""
_STYLES: Final = frozenset(
    {"classDef", "class", "style", "linkStyle", "click", "direction", "accTitle", "accDescr"}
)
_WORD: Final = re.compile(r"[A-Za-z]\w*")
_ID: Final = re.compile(r"[\w.]+(?:-(?=\w)[\w.]+)*")
_ATTRIBUTES: Final = re.compile(r"@\{(?P<text>(?:\"[^\"]*\"|[^}\"])*)\}")
_ATTRIBUTE: Final = re.compile(
    r"(?P<name>\w+)\s*:\s*(?:\"(?P<quoted>[^\"]*)\"|(?P<plain>[^,\"\n]+))"
)
_CLASS: Final = re.compile(r":::[\w-]+")
_PLAIN_LINE: Final = re.compile(
    r"(?P<start>[<xo](?=[-=]))?(?:(?P<hidden>~~~+)|(?:--+|==+)[-=xo>]|-\.+-[xo>]?)"
)
_TEXT: Final = r"(?:\s{{0,9}}\"(?P<quoted{0}>[^\"]*)\"\s{{0,9}}|(?P<plain{0}>[^\"|]*?))"
# Repetitions that could begin at each place of a long text are bounded, so that reading stays linear.
_LABELLED_LINE: Final = re.compile(
    r"(?P<start>[<xo](?=[-=]))?(?:"
    rf"--{_TEXT.format(1)}-{{2,99}}[-xo>]|=={_TEXT.format(2)}={{2,99}}[=xo>]|"
    rf"-\.{_TEXT.format(3)}\.{{1,99}}-[xo>]?)"
)
_LABEL: Final = re.compile(
    r"\s{0,9}\|(?:\s{0,9}\"(?P<quoted>[^\"]*)\"\s{0,9}|(?P<plain>[^|\"]*))\|"
)
_AND: Final = re.compile(r"\s*&\s*")
_SPACE: Final = re.compile(r"[ \t]*")
_HEADER: Final = re.compile(
    r"\s*(?:flowchart-elk|flowchart|graph)\b[ \t]*(?:TB|TD|BT|RL|LR|[<>v^])?[ \t]*"
)
_FRONT_MATTER: Final = re.compile(
    r"\A\s*---[ \t]*\r?\n(?P<text>.*?)\n---[ \t]*(?=\r?\n|\Z)", re.DOTALL
)
_ENTITY: Final = re.compile(r"#(?:(?P<number>\d{1,7})|(?P<name>[A-Za-z]\w{1,30}));")
_ENTITY_END: Final = re.compile(r"#\w+\Z")
_LONGEST_ENTITY: Final = 32
_BREAK: Final = re.compile(r"<br\s*/?>", re.IGNORECASE)
_MARKDOWN: Final = re.compile(r"\A`(.*)`\Z", re.DOTALL)


class Vertex(NamedTuple):
    """A step of a chart.

    Attributes:
        id: Its id.
        shape: A name of its outline, ``box`` if none is drawn.
        label: Its text; its id if none is written.
        line: Where it is first named, from 1.
    """

    id: str
    shape: str
    label: str
    line: int


class Link(NamedTuple):
    """A line of a chart.

    Attributes:
        source: Where it begins.
        target: Where it ends.
        label: Its text, or "".
        is_two_way: Whether it has arrows at both ends.
        is_hidden: Whether it is not drawn.
        has_arrow: Whether it has an arrow at all.
        line: Where it stands, from 1.
    """

    source: str
    target: str
    label: str
    is_two_way: bool
    is_hidden: bool
    has_arrow: bool
    line: int


class Statement(NamedTuple):
    """A statement that is no step or line, or that cannot be read."""

    line: int
    word: str
    text: str


@dataclass
class Chart:
    """A flowchart.

    Attributes:
        title: Its title, or "".
        vertices: The steps by id, in the order in which they are first named.
        links: The lines.
        groups: The ids of subgraphs.
        ignored: Statements that style or group what is drawn.
        unreadable: Statements that are none.
    """

    title: str = ""
    vertices: dict[str, Vertex] = field(default_factory=dict[str, Vertex])
    links: list[Link] = field(default_factory=list[Link])
    groups: set[str] = field(default_factory=set[str])
    ignored: list[Statement] = field(default_factory=list[Statement])
    unreadable: list[Statement] = field(default_factory=list[Statement])


def read_chart(text: str) -> Chart:
    """Read a flowchart; what cannot be read is in ``unreadable``."""
    chart = Chart()
    front = _FRONT_MATTER.match(text)
    if front is not None:
        chart.title = _title(front["text"])
        text = "\n" * text[: front.end()].count("\n") + text[front.end() :]
    text = _without_directives(text)
    is_begun = False
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("%%"):
            continue
        if not is_begun:
            header = _HEADER.match(line)
            line, is_begun = line[header.end() :] if header else line, True
        for statement in _statements(line):
            _read_statement(chart, statement, number)
    for name in chart.groups:
        vertex = chart.vertices.get(name)
        if vertex is not None and vertex.label == name:
            del chart.vertices[name]
    return chart


def plain_text(label: str) -> str:
    """Return a label without entities, line breaks of HTML and marks of Markdown."""
    text = _BREAK.sub("\n", _MARKDOWN.sub(r"\1", label.strip()))
    return html.unescape(_ENTITY.sub(_character, text)).strip()


def _without_directives(text: str) -> str:
    """Return a text without ``%%{ … }%%``, with its lines at their numbers."""
    parts: list[str] = []
    at = 0
    while (start := text.find("%%{", at)) >= 0 and (end := text.find("}%%", start)) >= 0:
        parts += text[at:start], "\n" * text.count("\n", start, end)
        at = end + 3
    return "".join([*parts, text[at:]])


def _character(found: re.Match[str]) -> str:
    if found["name"] is not None:
        return html.unescape(f"&{found['name']};")
    number = int(found["number"])
    is_text = number in (9, 10, 13) or 32 <= number < 0xD800 or 0xE000 <= number < 0x110000
    return chr(number) if is_text else found[0]


def _title(text: str) -> str:
    try:
        value: Any = parse_yaml(text)
    except GraphInvalid:
        return ""
    title = cast("dict[str, Any]", value).get("title") if isinstance(value, dict) else None
    return title if isinstance(title, str) else ""


def _statements(line: str) -> Iterator[str]:
    """Yield the statements of a line, which semicolons end that stand in no label."""
    start, is_quoted, depth = 0, False, 0
    for index, letter in enumerate(line):
        if letter == '"':
            is_quoted = not is_quoted
        elif letter in "[({":
            depth += not is_quoted
        elif letter in "])}":
            depth -= not is_quoted
        elif letter == ";" and not is_quoted and depth <= 0:
            if _ENTITY_END.search(line, max(start, index - _LONGEST_ENTITY), index):
                continue
            yield line[start:index]
            start = index + 1
    yield line[start:]


def _read_statement(chart: Chart, statement: str, number: int) -> None:
    text = statement.strip()
    if not text:
        return
    found = _WORD.match(text)
    word, rest = (found[0], text[found.end() :]) if found else ("", text)
    is_alone = not rest or rest[0] in " \t:"
    if word == "subgraph" and is_alone:
        name = _ID.match(rest.strip())
        if name is not None:
            chart.groups.add(name[0])
        chart.ignored.append(Statement(number, word, text))
    elif (word in _STYLES and is_alone and rest) or text == "end":
        if word != "end":
            chart.ignored.append(Statement(number, word, text))
    else:
        reader = _Reader(text, number, MAX_LINKS - len(chart.links))
        if not reader.read():
            chart.unreadable.append(Statement(number, "", text))
            return
        for vertex in reader.vertices:
            known = chart.vertices.get(vertex.id)
            if known is None or vertex.shape or vertex.label:
                line = number if known is None else known.line
                label = vertex.label or (known.label if known else vertex.id)
                shape = vertex.shape or (known.shape if known else "box")
                chart.vertices[vertex.id] = Vertex(vertex.id, shape, label, line)
        chart.links += reader.links


class _Reader:
    """Reads one statement: steps, joined by ``&``, with lines between them."""

    def __init__(self, text: str, number: int, most_links: int) -> None:
        self._text, self._number, self._at = text, number, 0
        self._most_links = most_links
        self.vertices: list[Vertex] = []
        self.links: list[Link] = []

    def read(self) -> bool:
        """Return whether all of the statement could be read."""
        left = self._group()
        if not left:
            return False
        while not self._is_end():
            line = self._line()
            right = self._group() if line is not None else []
            if line is None or not right:
                return False
            if len(self.links) + len(left) * len(right) > self._most_links:
                return False
            self.links += [line._replace(source=s, target=t) for s in left for t in right]
            left = right
        return True

    def _is_end(self) -> bool:
        self._match(_SPACE)
        return self._at >= len(self._text)

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._text, self._at)
        if found is not None:
            self._at = found.end()
        return found

    def _group(self) -> list[str]:
        ids: list[str] = []
        while True:
            self._match(_SPACE)
            vertex = self._vertex()
            if vertex is None:
                return []
            self.vertices.append(vertex)
            ids.append(vertex.id)
            if self._match(_AND) is None:
                return ids

    def _vertex(self) -> Vertex | None:
        found = self._match(_ID)
        if found is None:
            return None
        shape = label = ""
        attributes = self._match(_ATTRIBUTES)
        if attributes is not None:
            shape, label = _attributes(attributes["text"])
        else:
            drawn = self._shape()
            if drawn is None:
                return None
            shape, label = drawn
        self._match(_CLASS)
        return Vertex(found[0], shape, label, self._number)

    def _shape(self) -> tuple[str, str] | None:
        """Return shape and label; empty ones where none is drawn, None where they do not end."""
        for before, endings, name in _SHAPES:
            if not self._text.startswith(before, self._at):
                continue
            start = self._at + len(before)
            quoted = re.compile(r'\s*"([^"]*)"\s*').match(self._text, start)
            if quoted is not None:
                after = [each for each in endings if self._text.startswith(each, quoted.end())]
                if after:
                    self._at = quoted.end() + len(after[0])
                    return name, plain_text(quoted[1]) or " "
                continue
            ends = [(at, e) for e in endings if (at := self._text.find(e, start)) >= 0]
            if ends:
                at, ending = min(ends)
                self._at = at + len(ending)
                return name, plain_text(self._text[start:at]) or " "
        return ("", "") if self._text[self._at : self._at + 1] not in ("[", "(", "{") else None

    def _line(self) -> Link | None:
        self._match(_SPACE)
        found = self._match(_PLAIN_LINE)
        label = ""
        if found is not None:
            named = self._match(_LABEL)
            if named is not None:
                label = named["quoted"] if named["quoted"] is not None else named["plain"]
        else:
            found = self._match(_LABELLED_LINE)
            if found is None:
                return None
            parts = found.groupdict()
            label = next((t for n, t in parts.items() if n != "start" and t is not None), "")
        drawn = found[0]
        is_hidden = "~" in drawn
        has_end = drawn[-1] in ">xo"
        is_two_way = bool(found["start"]) and has_end
        return Link("", "", plain_text(label), is_two_way, is_hidden, has_end, self._number)


def _attributes(text: str) -> tuple[str, str]:
    values = {
        found["name"]: found["quoted"] if found["quoted"] is not None else found["plain"].strip()
        for found in _ATTRIBUTE.finditer(text)
    }
    shape = values.get("shape", "")
    return _NAMED_SHAPES.get(shape, "box" if shape else ""), plain_text(values.get("label", ""))
