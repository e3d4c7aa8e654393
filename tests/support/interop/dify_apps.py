"""Apps of Dify, made by tests: by hand, or at random with every type of step and any damage."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import pairwise
from random import Random
from types import ModuleType, SimpleNamespace
from typing import Any, Final, NamedTuple, cast

import planwave
from planwave.interop.importing.importer import Imported
from planwave.nodes.library import LIBRARY

Json = Any

SECRETS: Final = ("sk-test0123456789abcdef", "hunter2-hunter2", "tok_0123456789abcdefgh")
"""Values that random apps hold as secrets."""
KINDS: Final = (
    "llm", "if-else", "question-classifier", "parameter-extractor", "template-transform",
    "variable-aggregator", "http-request", "agent", "code", "iteration", "loop", "answer", "end", "tool",
    "assigner", "knowledge-retrieval", "document-extractor", "list-operator", "human-input", "unheard-of",
)  # fmt: skip
_FIELDS: Final = (
    "text", "output", "body", "status_code", "class_name", "city", "item", "index", "count", "x",
    "structured_output.a", "result", "error_message", "loop_round",
)  # fmt: skip
_OPERATORS: Final = (
    "contains", "not contains", "start with", "end with", "is", "is not", "empty", "not empty", "in",
    "not in", "all of", "=", "≠", ">", "<", "≥", "≤", "null", "not null", "exists", "not exists", "like",
)  # fmt: skip
_TEXTS: Final = (
    "", "plain", "{{ jinja }}", "{% if", "{# no", '{"a": {{#N.text#}}}', "{{{#N.text#}}}", 'q"}}"\\', "ü → 🐦",
    "a\r\nb\t", "{{#context#}}", "{{#sys.query#}}", "{{#env.REGION#}}", "{{#env.KEY#}}", "{{#conversation.mood#}}",
    "{{#gone.text#}}", "{{#N.text#}} and {{#M.output#}}", "{{#nothing#}}", "Bearer sk-test0123456789abcdef",
    "password: hunter2-hunter2", "{{#", "#}}", "{{ N.text | upper }}", "{% for a in b %}{{ a.c }}{% endfor %}",
)  # fmt: skip


def seeded(seed: int) -> Random:
    """Return random numbers that are the same in each run."""
    return Random(seed)  # noqa: S311


def app(
    nodes: Sequence[Mapping[str, Any]],
    edges: Sequence[Mapping[str, Any]] = (),
    *,
    mode: str = "workflow",
    **workflow: Any,
) -> str:
    """Return an app as text."""
    document = {
        "app": {"mode": mode, "name": "Test app"},
        "kind": "app",
        "version": "0.3.0",
        "workflow": {"graph": {"nodes": list(nodes), "edges": list(edges)}, **workflow},
    }
    return json.dumps(document)


def step(step_id: str, kind: str, parent: str | None = None, **data: Any) -> dict[str, Any]:
    """Return a node of the file; ``parent`` is the iteration or loop around it."""
    node: dict[str, Any] = {
        "id": step_id,
        "type": "custom",
        "position": {"x": 1, "y": 2},
        "data": {"type": kind, "title": f"Step {step_id}", **data},
    }
    return node if parent is None else node | {"parentId": parent}


def edge(source: str, target: str, handle: str = "source") -> dict[str, Any]:
    """Return an edge of the file."""
    return {
        "id": f"{source}-{handle}-{target}",
        "source": source,
        "sourceHandle": handle,
        "target": target,
        "targetHandle": "target",
    }


def start(*variables: str, **optional: Any) -> dict[str, Any]:
    """Return a start step with required text inputs, and optional ones with their default."""
    required = [{"variable": v, "type": "paragraph", "required": True} for v in variables]
    others = [
        {"variable": name, "type": "text-input", "required": False, "default": value}
        for name, value in optional.items()
    ]
    return step("s", "start", variables=[*required, *others])


def chain(*ids: str) -> list[dict[str, Any]]:
    """Return edges from each step to the next one."""
    return [edge(a, b) for a, b in pairwise(ids)]


def graph_of(imported: Imported) -> dict[str, Any]:
    """Return the graph of an import, as a run takes it."""
    return {name: imported.document[name] for name in ("nodes", "edges")}


def open_graph_of(imported: Imported) -> dict[str, Any]:
    """Return the graph of an import with its inputs of any type, none of them required."""
    graph = deepcopy(graph_of(imported))
    for node in graph["nodes"]:
        if node["type"] == "start" and (schema := node["data"].get("schema")):
            node["data"]["schema"] = {
                "type": "object",
                "properties": {name: {} for name in schema["properties"]},
            }
    return graph


def data_of(imported: Imported, node_id: str) -> dict[str, Any]:
    """Return the data of a node of the document."""
    found = next(node for node in imported.document["nodes"] if node["id"] == node_id)
    return cast("dict[str, Any]", found.get("data", {}))


def registry_with(code: str) -> planwave.Registry:
    """Load a module of node types into a registry of its own."""
    registry = planwave.Registry(LIBRARY)
    module = ModuleType("written_by_an_import")

    def node(*args: Any, **options: Any) -> Any:
        return planwave.node(*args, **options, registry=registry)

    vars(module)["planwave"] = SimpleNamespace(node=node)
    without_import = code.replace("\nimport planwave\n", "\n")
    assert without_import != code
    exec(compile(without_import, "written_by_an_import.py", "exec"), vars(module))  # noqa: S102
    return registry


def pointers(document: Mapping[str, Any], prefix: str = "") -> tuple[list[str], list[str]]:
    """Return the pointers of all nodes and edges of an app, as its file has them."""
    graph = document.get("workflow", {}).get("graph", {})
    found: list[list[str]] = []
    for name in ("nodes", "edges"):
        each = graph.get(name)
        items = each if isinstance(each, list) else []
        found.append(
            [
                f"{prefix}/workflow/graph/{name}/{i}"
                for i, e in enumerate(items)
                if isinstance(e, dict)
            ]
        )
    return found[0], found[1]


def random_app(random: Random, size: int) -> dict[str, Any]:
    """Return an app with steps of every type that read each other, rightly and wrongly."""
    ids = [str(100 + i) for i in range(size)]
    nodes = [_random_start(random)]
    parents: dict[str, str | None] = {"s": None}
    regions: list[str] = []
    is_right = random.random() < 0.6
    right: dict[str | None, list[list[str]]] = {None: [["s", "text"], ["s", "city"]]}
    for step_id in ids:
        kind = random.choice(KINDS[:13] if is_right and random.random() < 0.8 else KINDS)
        parent = random.choice(regions) if regions and random.random() < 0.4 else None
        there = [*right[None], *(right[parent] if parent else [])] if is_right else []
        names = _Names(["s", *ids], there)
        node = step(step_id, kind, parent, **_random_data(random, kind, names, parent))
        parents[step_id] = parent
        if kind in _OUTPUT_OF:
            right[parent].append([step_id, _OUTPUT_OF[kind]])
        if kind in ("iteration", "loop"):
            right[step_id] = [[step_id, "item" if kind == "iteration" else "x"]]
            node["data"] |= (
                {"output_selector": [f"{step_id}start", "x"]} if is_right and kind == "loop" else {}
            )
        nodes.append(node)
        if kind in ("iteration", "loop"):
            regions.append(step_id)
            if random.random() < 0.9:
                first = f"{step_id}start"
                nodes.append(step(first, f"{kind}-start", step_id))
                parents[first] = step_id
                node["data"]["start_node_id"] = first
    for region in regions if is_right else ():
        inside = [list(each) for each in right[region][1:]]
        next(n for n in nodes if n["id"] == region)["data"]["output_selector"] = (
            random.choice(inside) if inside else [region, "item"]
        )
    edges = list(_random_edges(random, nodes, parents, is_right))
    document = json.loads(app(nodes, edges, mode=random.choice(["workflow", "advanced-chat"])))
    document["workflow"] |= {
        "environment_variables": [
            {"name": "REGION", "value": "eu", "value_type": "string"},
            {"name": "KEY", "value": random.choice(SECRETS), "value_type": "secret"},
        ],
        "conversation_variables": [{"name": "mood", "value": "calm", "value_type": "string"}],
        "features": {"opening_statement": "Hi", "sensitive_word_avoidance": {"enabled": True}},
    }
    return document


def _random_start(random: Random) -> dict[str, Any]:
    kinds = ["paragraph", "select", "number", "checkbox", "file", "file-list", "json_object"]
    variables = [
        {
            "variable": name,
            "type": random.choice(kinds),
            "required": random.random() < 0.5,
            "default": random.choice(["", "a", 3, None]),
            "options": ["a", "b"],
        }
        for name in ("text", "city", "output")
    ]
    return step("s", "start", variables=variables)


def _random_edges(
    random: Random,
    nodes: Sequence[Mapping[str, Any]],
    parents: Mapping[str, str | None],
    is_right: bool,
) -> Iterator[dict[str, Any]]:
    ids = [node["id"] for node in nodes]
    kinds = {node["id"]: node["data"]["type"] for node in nodes}
    if is_right:
        for scope in dict.fromkeys(parents.values()):
            beginnings = ("start", "iteration-start", "loop-start")
            inside = [each for each in ids if parents[each] == scope]
            inside.sort(key=lambda each: kinds[each] not in beginnings)
            for source, target in pairwise(inside):
                ways = {"if-else": "true", "question-classifier": "1"}
                yield edge(source, target, ways.get(kinds[source], "source"))
        return
    for number, target in enumerate(ids[1:], 1):
        same = [each for each in ids[:number] if parents[each] == parents[target]]
        for source in random.sample(same, min(len(same), random.choice([1, 1, 1, 2, 0]))):
            handle = random.choice(["source", "source", "true", "false", "1", "2", "fail-branch"])
            if kinds[source] not in ("if-else", "question-classifier") and random.random() < 0.8:
                handle = "source"
            yield edge(source, target, handle)
    for _ in range(random.choice([0, 0, 0, 1, 2])):
        yield edge(random.choice([*ids, "gone"]), random.choice([*ids, "lost"]))


class _Names(NamedTuple):
    """What a step may name: every step, and values that are there for it."""

    ids: Sequence[str]
    right: Sequence[Sequence[str]]


_OUTPUT_OF: Final = {
    "llm": "text", "template-transform": "output", "http-request": "body", "code": "x", "agent": "text",
    "parameter-extractor": "city", "question-classifier": "class_name", "variable-aggregator": "output",
    "iteration": "output", "loop": "count", "tool": "text", "knowledge-retrieval": "result",
}  # fmt: skip


def _text(random: Random, names: _Names) -> str:
    if names.right:
        named = [
            f"{{{{#{'.'.join(random.choice(names.right))}#}}}}" for _ in range(random.randrange(3))
        ]
        return random.choice(["Say ", "{ {{ no {% ", "ü\n", ""]).join(["", *named, "!"])
    text = random.choice(_TEXTS)
    for name in "NM":
        text = text.replace(f"#{name}.", f"#{random.choice(names.ids)}.")
    if random.random() < 0.5:
        text += f" {{{{#{random.choice(names.ids)}.{random.choice(_FIELDS)}#}}}}"
    return text


def _selector(random: Random, names: _Names, parent: str | None = None) -> list[str]:
    if names.right:
        return list(random.choice(names.right))
    head = random.choice(
        [*names.ids, *([parent] * len(names.ids) if parent else []), "sys", "env", "conversation"]
    )
    return [head, *random.choice(_FIELDS).split(".")]


def _conditions(random: Random, names: _Names) -> list[dict[str, Any]]:
    return [
        {
            "comparison_operator": random.choice(_OPERATORS),
            "value": random.choice(
                [_text(random, names), "5", "true", ["a"], '["a"]', None, 4, False]
            ),
            "varType": random.choice(["string", "number", "boolean", "array[string]", "file"]),
            "variable_selector": _selector(random, names),
        }
        for _ in range(random.randrange(3))
    ]


def _errors(random: Random) -> dict[str, Any]:
    return {
        "retry_config": {
            "retry_enabled": random.random() < 0.5,
            "max_retries": 20,
            "retry_interval": 10,
        },
        "error_strategy": random.choice(["none", "fail-branch", "default-value", "x", ""]),
        "default_value": [{"key": random.choice(["text", "body", "x"]), "value": "v"}],
    }


def _model(random: Random) -> dict[str, Any]:
    return {
        "provider": random.choice(["langgenius/openai/openai", "openai", "", "ü"]),
        "name": "gpt-4o-mini",
        "completion_params": random.choice(
            [
                {},
                {"temperature": 0.5},
                {"temperature": 9},
                {"top_p": 1, "max_tokens": 5},
                {"max_tokens": "x"},
            ]
        ),
    }


class _Draw:
    """Random parts that the settings of steps are made of."""

    def __init__(self, random: Random, names: _Names, parent: str | None) -> None:
        self.random, self.names, self.parent = random, names, parent
        self.text, self.selector = _text(random, names), _selector(random, names, parent)
        self.variables = [
            {
                "variable": random.choice(["a", "item", "nodes", "x y"]),
                "value_selector": _selector(random, names, parent),
            }
            for _ in range(random.randrange(3))
        ]
        self.shared = {"model": _model(random), **_errors(random)}

    def messages(self) -> list[dict[str, Any]]:
        """Return the messages of a prompt."""
        return [
            {
                "role": self.random.choice(["system", "user", "assistant"]),
                "text": _text(self.random, self.names),
                "edition_type": self.random.choice(["basic", "basic", "jinja2"]),
                "jinja2_text": _text(self.random, self.names),
            }
            for _ in range(self.random.randrange(4))
        ]


def _random_data(random: Random, kind: str, names: _Names, parent: str | None) -> dict[str, Any]:
    return _DATA.get(kind, _other)(_Draw(random, names, parent))


def _llm(of: _Draw) -> dict[str, Any]:
    random = of.random
    text = of.text
    selector = of.selector
    window = {"window": {"enabled": random.random() < 0.5, "size": random.choice([0, 5, 5000])}}
    return {
        **of.shared,
        "prompt_template": random.choice([of.messages(), of.messages(), {"text": text}]),
        "prompt_config": {"jinja2_variables": of.variables},
        "memory": random.choice([None, None, window]),
        "context": {"enabled": random.random() < 0.5, "variable_selector": selector},
        "vision": {
            "enabled": random.random() < 0.3,
            "configs": {"variable_selector": selector},
        },
        "structured_output_enabled": random.random() < 0.2,
        "structured_output": {
            "schema": {"type": "object", "properties": {"a": {"type": "string"}}}
        },
    }


def _if_else(of: _Draw) -> dict[str, Any]:
    random = of.random
    names = of.names
    cases = [
        {
            "case_id": c,
            "logical_operator": random.choice(["and", "or", "xor"]),
            "conditions": _conditions(random, names),
        }
        for c in random.choice([["true"], ["true", "1"], ["true", "true"], [""]])
    ]
    return random.choice(
        [
            {"cases": cases},
            {"conditions": _conditions(random, names), "logical_operator": "or"},
        ]
    )


def _question_classifier(of: _Draw) -> dict[str, Any]:
    random = of.random
    names = of.names
    text = of.text
    selector = of.selector
    return {
        **of.shared,
        "classes": [{"id": i, "name": _text(random, names)} for i in ("1", "2")],
        "query_variable_selector": selector,
        "instruction": text,
    }


def _parameter_extractor(of: _Draw) -> dict[str, Any]:
    random = of.random
    text = of.text
    selector = of.selector
    types = ["string", "number", "array[string]", "select", "bool", "odd"]
    return {
        **of.shared,
        "query": selector,
        "instruction": text,
        "parameters": [
            {
                "name": random.choice(["city", "a b", ""]),
                "type": random.choice(types),
                "required": True,
                "options": ["a"],
            }
        ],
    }


def _template_transform(of: _Draw) -> dict[str, Any]:
    text = of.text
    return {"template": text, "variables": of.variables}


def _variable_aggregator(of: _Draw) -> dict[str, Any]:
    random = of.random
    names = of.names
    parent = of.parent
    selector = of.selector
    groups = [{"group_name": "g", "output_type": "string", "variables": [selector]}]
    return {
        "output_type": random.choice(["string", "array[string]"]),
        "variables": [_selector(random, names, parent) for _ in range(random.randrange(3))],
        "advanced_settings": {"group_enabled": random.random() < 0.3, "groups": groups},
    }


def _http_request(of: _Draw) -> dict[str, Any]:
    random = of.random
    text = of.text
    body_type = random.choice(
        ["none", "json", "raw-text", "form-data", "x-www-form-urlencoded", "binary"]
    )
    data = random.choice(
        [text, [{"key": "k", "type": random.choice(["text", "file"]), "value": text}]]
    )
    return {
        **_errors(random),
        "method": random.choice(["get", "POST", "options"]),
        "url": random.choice(["https://a.example/x", "ftp://x", "", "https://a.example/{{#s.city#}}", text]),
        "headers": random.choice(["", "X-A: 1\nAuthorization: Bearer tok_0123456789abcdefgh", text, "X: {{#env.KEY#}}", "Cookie: a={{#env.REGION#}}", "Host: x\nTE: é"]),
        "params": random.choice(["", "a:1\na:2", text, "api_key:tok_0123456789abcdefgh"]),
        "body": {"type": body_type, "data": data},
        "timeout": {"connect": 3, "read": random.choice([None, 5])},
        "authorization": random.choice(
            [
                {"type": "no-auth"},
                {"type": "api-key", "config": {"type": "bearer", "api_key": "tok_0123456789abcdefgh"}},
                {"type": "api-key", "config": {"type": "custom", "header": "X-Key", "api_key": "{{#env.KEY#}}"}},
                {"type": "api-key", "config": {"type": "odd", "api_key": "hunter2-hunter2"}},
            ]
        ),
    }  # fmt: skip


def _agent(of: _Draw) -> dict[str, Any]:
    random = of.random
    text = of.text
    selector = of.selector
    return {
        **_errors(random),
        "agent_parameters": {
            "instruction": {"type": "constant", "value": text},
            "query": {
                "type": random.choice(["constant", "variable"]),
                "value": random.choice([text, selector]),
            },
            "model": {"value": _model(random)},
            "maximum_iterations": {"value": random.choice([0, 5, 500])},
            "tools": {
                "value": [
                    {
                        "tool_name": "t",
                        "enabled": random.random() < 0.7,
                        "settings": {"api_key": "hunter2-hunter2"},
                    }
                ]
            },
        },
    }


def _code(of: _Draw) -> dict[str, Any]:
    random = of.random
    return {
        **_errors(random),
        "code_language": random.choice(["python3", "python3", "javascript"]),
        "code": random.choice(
            [
                "def main(a=1):\n    return {'x': '''\nleft\n'''}\n",
                "def main(:\n",
                "import os\nX = 1\ndef main():\n\treturn {'x': X}\n",
                "from math import *\ndef main():\n    return {}\n",
                "key = 'sk-test0123456789abcdef'\ndef main():\n    return {}",
                "x = 1",
            ]
        ),
        "outputs": {
            "x": {"type": random.choice(["string", "array[object]", "odd"])},
            'q"{': {"type": "any"},
        },
        "variables": of.variables,
    }


def _assigner(of: _Draw) -> dict[str, Any]:
    random = of.random
    parent = of.parent
    text = of.text
    selector = of.selector
    items = [
        {
            "variable_selector": random.choice(
                [["conversation", "mood"], [parent or "x", "x"], selector]
            ),
            "operation": random.choice(
                ["over-write", "set", "append", "clear", "+=", "odd", "remove-first"]
            ),
            "input_type": random.choice(["constant", "variable"]),
            "value": random.choice([text, selector, 4, {"a": None}]),
        }
    ]
    old = {
        "assigned_variable_selector": ["conversation", "mood"],
        "input_variable_selector": selector,
    }
    return random.choice([{"items": items, "version": "2"}, old])


def _list_operator(of: _Draw) -> dict[str, Any]:
    random = of.random

    def maybe(**data: Any) -> dict[str, Any]:
        return {"enabled": random.random() < 0.5, **data}

    conditions = [
        {
            "key": random.choice(["type", "size", ""]),
            "comparison_operator": random.choice(_OPERATORS),
            "value": random.choice([of.text, "5", ["image"], ["document"], None]),
        }
        for _ in range(random.randrange(3))
    ]
    return {
        "variable": random.choice([of.selector, of.selector, ["sys", "files"]]),
        "var_type": random.choice(
            ["array[string]", "array[number]", "array[file]", "array[object]"]
        ),
        "filter_by": maybe(conditions=conditions),
        "order_by": maybe(key="", value=random.choice(["asc", "desc", "odd"])),
        "limit": maybe(size=random.choice([0, 2, -1, "x"])),
        "extract_by": {"enabled": random.random() < 0.1, "serial": "1"},
    }


def _answer(of: _Draw) -> dict[str, Any]:
    text = of.text
    return {"answer": text}


def _end(of: _Draw) -> dict[str, Any]:
    random = of.random
    selector = of.selector
    return {
        "outputs": [{"variable": "o", "value_selector": selector}] if random.random() < 0.8 else []
    }


def _iteration(of: _Draw) -> dict[str, Any]:
    random = of.random
    names = of.names
    selector = of.selector
    return {
        "iterator_selector": selector,
        "output_selector": [random.choice(names.ids), random.choice(_FIELDS)],
        "is_parallel": random.random() < 0.5,
        "parallel_nums": random.choice([0, 4, 400]),
        "error_handle_mode": random.choice(
            ["terminated", "continue-on-error", "remove-abnormal-output", "odd"]
        ),
        "flatten_output": random.random() < 0.5,
    }


def _loop(of: _Draw) -> dict[str, Any]:
    random = of.random
    names = of.names
    text = of.text
    selector = of.selector
    return {
        "loop_count": random.choice([3, 0, None, "5"]),
        "break_conditions": random.choice([[], _conditions(random, names)]),
        "logical_operator": "and",
        "loop_variables": [
            {"label": "x", "var_type": "string", "value_type": "constant", "value": text},
            {
                "label": "count",
                "var_type": "number",
                "value_type": random.choice(["constant", "variable"]),
                "value": random.choice([0, "1", selector]),
            },
        ],
    }


def _other(of: _Draw) -> dict[str, Any]:
    text = of.text
    return {
        "tool_name": "t",
        "tool_parameters": {"q": {"value": text}},
        "api_key": "hunter2-hunter2",
    }


_DATA: Final[Mapping[str, Callable[[_Draw], dict[str, Any]]]] = {
    "llm": _llm,
    "if-else": _if_else,
    "question-classifier": _question_classifier,
    "parameter-extractor": _parameter_extractor,
    "template-transform": _template_transform,
    "variable-aggregator": _variable_aggregator,
    "http-request": _http_request,
    "agent": _agent,
    "code": _code,
    "assigner": _assigner,
    "list-operator": _list_operator,
    "answer": _answer,
    "end": _end,
    "iteration": _iteration,
    "loop": _loop,
}


def damaged(random: Random, document: dict[str, Any], times: int) -> dict[str, Any]:
    """Return a copy in which parts of the graph are deleted, or have other values."""
    copied = copy.deepcopy(document)
    graph = copied["workflow"]["graph"]
    for _ in range(times):
        places = list(_places(graph))
        if not places:
            break
        holder, key = random.choice(places)
        if isinstance(holder, dict) and random.random() < 0.4:
            del holder[key]
        else:
            holder[key] = copy.deepcopy(
                random.choice(
                    [
                        None,
                        7,
                        -1.5,
                        True,
                        "",
                        'ü}}"{%',
                        [],
                        {},
                        ["s", "text"],
                        [None],
                        {"a": {"b": 1}},
                        10**30,
                    ]
                )
            )
    return copied


def _places(value: Json) -> Iterator[tuple[Any, Any]]:
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inside in items:
        yield value, key
        yield from _places(inside)
