"""docs/templates.md is true: its examples give what it says, and it lists all that a template may use."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import jinja2
import pytest
from jinja2 import nodes

import planwave
from planwave.errors import TemplateError
from planwave.expressions import FUNCTIONS, ROOT_VARIABLES, compile_template, errors
from planwave.expressions.render_worker import RenderEnvironment, respond
from planwave.expressions.renderer import Renderer
from planwave.expressions.syntax import ENGINE_FILTERS, ENGINE_TESTS, parse_template
from planwave.nodes.authoring.data_fields import fields_of
from planwave.nodes.library import LIBRARY
from tests.support.cli.doc_page import LEFT_OUT, blocks, commands
from tests.support.nodes.node_packages import run_command
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "templates.md").read_text("utf-8")
FILES = {block["file"]: block["text"] for block in blocks(PAGE) if block["file"]}
INPUT = json.loads(FILES["input.json"])
EXAMPLE = re.compile(r"^(?P<template>.*?\S) +\{# (?P<gives>.*) #\}$")
REFUSED = re.compile(r"^\| `(?P<template>[^`]+)` \| (?P<when>[^|]+) \| `(?P<code>[^`]+)` \|", re.M)


def examples() -> list[tuple[str, str]]:
    """Return the templates of the page, each with the JSON that it gives."""
    lines = [line for b in blocks(PAGE) if b["kind"] == "jinja" for line in b["text"].splitlines()]
    found = [EXAMPLE.match(line) for line in lines]
    assert None not in found, "a line without its result"
    return [(each["template"], each["gives"]) for each in found if each]


def found_in_examples(kind: type[nodes.Filter | nodes.Test]) -> set[str]:
    """Return the names of the filters or tests that the examples use."""
    language = jinja2.Environment(autoescape=True)  # it renders nothing here
    trees = (language.parse(template) for template, _ in examples())
    return {str(each.name) for tree in trees for each in tree.find_all(kind)}


def named(row: str) -> set[str]:
    """Return the names in code of a sentence of the page."""
    return set(re.findall(r"`(\w+)`", row))


class Lookup:
    """The variables of the examples."""

    def lookup(self, root: str) -> Any:
        return {"input": INPUT}[root]


async def test_every_example_gives_what_the_page_says() -> None:
    renderer = Renderer()
    try:
        for template, gives in examples():
            compiled = compile_template(template)
            assert compiled is not None, template
            value = await compiled.resolve(Lookup(), renderer)
            assert (value, type(value)) == (json.loads(gives), type(json.loads(gives))), template
    finally:
        await renderer.close()


def test_the_graph_of_the_page_runs(tmp_path: Path) -> None:
    (tmp_path / "offer.json").write_text(FILES["offer.json"], "utf-8")
    (block,) = [block for block in blocks(PAGE) if block["kind"] == "console"]
    (command,) = commands(block["text"])
    done = run_command(shlex.split(command.line), tmp_path)
    pattern = ".*?".join(map(re.escape, command.output.strip().split(LEFT_OUT)))
    assert re.fullmatch(pattern, done.stdout.strip(), re.S), done.stdout


def test_the_page_has_every_filter_test_and_function() -> None:
    assert found_in_examples(nodes.Filter) == ENGINE_FILTERS
    assert found_in_examples(nodes.Test) == ENGINE_TESTS
    section = PAGE.partition("\n## Functions\n")[2]
    assert set(re.findall(r"\b([a-z]+)\(", section.partition("```\n\n")[0])) == {*FUNCTIONS}


def test_the_page_has_every_tag() -> None:
    with pytest.raises(TemplateError) as raised:
        parse_template("{% shuffle %}")
    tags = (raised.value.hint or "").removeprefix("known tags: ").split(", ")
    (sentence,) = re.findall(r"^The tags are (.*?); in a `for` also (.*?)\.", PAGE, re.M)
    assert named(sentence[0]) == set(tags)
    for tag in named(sentence[1]):
        parse_template(f"{{% for x in input %}}{{% {tag} %}}{{% endfor %}}")
    (refused,) = re.findall(r"so there is no (.*?)\.", PAGE)
    for tag in named(refused):
        with pytest.raises(TemplateError) as raised:
            parse_template(f"{{% {tag} x %}}")
        assert raised.value.code == errors.FORBIDDEN


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("a", r"Texts have these methods of Python: (.*?)\."),
        ([1], r"Lists have (.*?);"),
        ({"a": 1}, r"objects have (.*?), whose"),
    ],
)
def test_the_page_has_every_method(value: Any, sentence: str) -> None:
    engine = RenderEnvironment(1_000_000, 1_000_000)

    def is_there(name: str) -> bool:
        request = {"op": "evaluate", "source": f"v.{name}()", "variables": {"v": value}}
        reply = json.loads(respond(engine.answer, json.dumps(request).encode()))
        return reply.get("error", {}).get("code") != errors.FORBIDDEN

    methods = {name for name in dir(value) if not name.startswith("_") and is_there(name)}
    (listed,) = re.findall(sentence, PAGE, re.S)
    assert named(listed) == methods


def test_the_page_has_every_name() -> None:
    section = PAGE.partition("\n## Names\n")[2].partition("\n## ")[0]
    first, second = section.split("Inside a nested graph")
    names = {re.split(r"\W", each)[0] for each in re.findall(r"^\| `([^`]+)`", first, re.M)}
    assert names == {*ROOT_VARIABLES, "topic", "city"}
    inside: dict[str, list[str]] = {}
    for node_type in LIBRARY:
        for field in fields_of(node_type.Data) if node_type.Data else ():
            if extra := {
                key: field.extra[key] for key in ("names", "namesOf") if key in field.extra
            }:
                inside.setdefault(node_type.node_type, []).append(field.json_name)
                row = next(r for r in second.splitlines() if f"`{node_type.node_type}` |" in r)
                assert {field.json_name, *extra.get("names", ())} <= named(row)
    assert inside == {"loop": ["body"], "while": ["condition", "body"], "inner": ["graph"]}


@pytest.mark.parametrize("row", [*REFUSED.finditer(PAGE)], ids=lambda row: row["template"])
def test_what_is_refused_is_refused_when_the_page_says_so(row: re.Match[str]) -> None:
    g = planwave.GraphBuilder()
    order = g.node("json", id="order", value=INPUT)
    text = row["template"].replace("\\|", "|")
    g.node("end", id="later", input=g.node("transform", id="here", expression=text, input=order))
    assert row["when"] in ("before the run", "in the run")
    if row["when"] == "in the run":
        (failure,) = planwave.run_sync(g, check=False).failures
        assert failure.code == row["code"]
        return
    with pytest.raises(planwave.GraphInvalid) as raised:
        planwave.build(g)
    assert {each.code for each in raised.value.diagnostics} == {row["code"]}


def test_the_page_has_every_code_of_templates() -> None:
    codes = {text for text in vars(errors).values() if str(text).startswith("template-")}
    assert len(codes) > 5
    assert codes == set(re.findall(r"`(template-[a-z-]+)`", PAGE))
    assert len(list(REFUSED.finditer(PAGE))) == len(re.findall(r"^\| .* run \|", PAGE, re.M))


def test_every_block_is_tried() -> None:
    assert {block["kind"] for block in blocks(PAGE)} == {"json", "jinja", "console"}
    assert {*FILES} == {"offer.json", "input.json"}
