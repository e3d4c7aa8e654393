"""Random apps of Dify, also damaged ones: every part is accounted for, nothing leaks, nothing fails."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.interop.importing.importer import Imported, import_text
from tests.support.interop.damage import Damaged
from tests.support.interop.damage import damaged as damaged_with_secrets
from tests.support.interop.dify_apps import (
    SECRETS,
    app,
    chain,
    damaged,
    edge,
    pointers,
    random_app,
    seeded,
    start,
    step,
)
from tests.support.interop.imports import assert_accounted_for, findings_of


def assert_converted(document: dict[str, Any], *, write_code: bool) -> Imported:
    made = import_text(json.dumps(document), kind="dify", write_code=write_code)
    nodes, edges = pointers(document)
    if not document["workflow"]["graph"]:  # an app without a graph is one step
        nodes = ["/model_config"]
    if write_code:
        ast.parse(made.code)
        made = _with_known_types(made)
    assert len(made.report["nodes"]) == len(nodes)
    if made.document["nodes"]:
        assert_accounted_for(made, nodes=nodes, edges=edges, secrets=SECRETS)
    return made


def _with_known_types(made: Imported) -> Imported:
    """Put a type that the check knows in place of those that the module adds."""
    text = json.dumps(made.document)
    for each in findings_of(made):
        if each.code == "unknown-node-type":
            name = each.message.split("unknown type '")[1].split("'")[0]
            assert name in made.code
            text = text.replace(json.dumps(name), '"parser"')
    document = json.loads(text.replace('"arguments": {', '"template": {'))
    for each in _nodes(document):
        if each["type"] == "parser":
            each.setdefault("data", {}).setdefault("template", "")
    return made._replace(document=document)


def _nodes(graph: Any) -> Any:
    for node in graph["nodes"]:
        yield node
        for name in ("graph", "body"):
            if isinstance(inside := node.get("data", {}).get(name), dict):
                yield from _nodes(inside)


@given(st.integers(0, 2**32), st.integers(1, 12), st.booleans())
def test_random_apps_are_accounted_for(seed: int, size: int, write_code: bool) -> None:
    assert_converted(random_app(seeded(seed), size), write_code=write_code)


@given(st.integers(0, 2**32), st.integers(1, 8), st.integers(1, 6))
def test_damaged_apps_are_accounted_for(seed: int, size: int, times: int) -> None:
    random = seeded(seed)
    assert_converted(damaged(random, random_app(random, size), times), write_code=bool(seed % 2))


@pytest.mark.parametrize("length", [500])
def test_an_app_of_500_steps_is_converted(length: int) -> None:
    names = [f"n{i}" for i in range(length)]
    steps = [
        step(name, "template-transform", template="{{ a }}", variables=[
            {"variable": "a", "value_selector": [before, "text" if before == "s" else "output"]}
        ])
        for before, name in zip(["s", *names], names, strict=False)
    ]  # fmt: skip
    made = import_text(app([start("text"), *steps], chain("s", *names)))
    assert made.report["summary"]["mapped"] == length + 1


@pytest.mark.parametrize(("depth", "lost"), [(2, 0), (3, 3)])
def test_iterations_in_iterations_read_from_the_outermost(depth: int, lost: int) -> None:
    def around(number: int) -> dict[str, Any]:
        outer = f"i{number - 1}" if number else None
        items = ["s", "text"] if outer is None else [outer, "item"]
        inside = f"i{number + 1}" if number < depth - 1 else "deep"
        return step(
            f"i{number}", "iteration", outer, iterator_selector=items,
            output_selector=[inside, "output"], start_node_id=f"b{number}",
        )  # fmt: skip

    regions = [around(number) for number in range(depth)]
    begins = [step(f"b{number}", "iteration-start", f"i{number}") for number in range(depth)]
    variables = [
        {"variable": "a", "value_selector": ["s", "city"]},
        {"variable": "b", "value_selector": ["i0", "index"]},
        {"variable": "c", "value_selector": [f"i{depth - 1}", "item"]},
    ]
    deep = step(
        "deep",
        "template-transform",
        f"i{depth - 1}",
        template="{{ a }}{{ b }}{{ c }}",
        variables=variables,
    )
    edges = [edge("s", "i0"), edge(f"b{depth - 1}", "deep")]
    edges += [edge(f"b{number}", f"i{number + 1}") for number in range(depth - 1)]
    document = json.loads(app([start("text", "city"), *regions, *begins, deep], edges))
    made = assert_converted(document, write_code=False)
    assert made.report["summary"]["placeholder"] == lost


_RANDOM_APPS = st.builds(
    lambda seed, size: random_app(seeded(seed), size), st.integers(0, 2**32), st.integers(1, 8)
)


@given(damaged_with_secrets(_RANDOM_APPS))
def test_secrets_anywhere_in_an_app_are_not_copied(damage: Damaged) -> None:
    document, secrets = damage
    made = import_text(json.dumps(document), kind="dify", write_code=True)
    written = json.dumps([made.document, made.report, made.code], ensure_ascii=False)
    for secret in secrets:
        assert secret not in written
    names = [entry["source"] for entry in made.report["nodes"]]
    assert len(names) == len(set(names))
