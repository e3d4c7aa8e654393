"""Rules of the tests and of the package as a whole: names, assertions, imports without circles."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

from tests.support.paths import ROOT

UNIT, PACKAGE = ROOT / "tests" / "unit", ROOT / "planwave"
TEST_FILES = sorted(
    path.relative_to(UNIT) for path in UNIT.rglob("test_*.py") if path.name != "test_layout.py"
)
WITHOUT_TEST_FILE: Mapping[str, str] = {
    ".": "bootstrap jsonio",
    "api": "access_rules dependencies preconditions session_cookies",
    "api/link_pages": "pages",
    "api/middleware": "audit credential_lifetime security_headers store_outage trace_context",
    "api/routes": "events links tokens websocket",
    "api/routes/chats": "collection messages streams",
    "api/routes/openai": "models streams",
    "api/schemas": "requests",
    "api/streaming": "chats",
    "cli/backends": "local",
    "cli/commands": "chat export flow_inputs flows mcp notifications refine spend stores tokens triggers",
    "cli/commands/executions": "explain labels",
    "cli/views": "imports trust",
    "client": "async_methods async_revisions sync_methods sync_revisions",
    "events": "graphs node_state plan_changes plan_payloads request_text types waves",
    "events/chat_events": "blocks speech",
    "executor": "messages ports state stored_runs values",
    "executor/driver": "attempt_tasks attempts run_state",
    "executor/node_api": "context mailbox nested templates",
    "executor/recovery": "replay",
    "executor/scheduling": "demand joins types",
    "expressions": "errors variables",
    "graph": "model operations outputs",
    "graph/editing": "forms",
    "graph/reading": "unreadable",
    "interop/exporting": "dot mermaid python_literals status_colours",
    "interop/importing": "branches jinja_filters json_schemas loops own",
    "interop/importing/covalt": "convert expressions flow kinds",
    "interop/importing/flowise": (
        "chains conditions conversation convert flow kinds loops models references requests "
        "rich_text state steps updates"
    ),
    "interop/importing/javascript": "methods operators syntax tokens values",
    "interop/importing/langflow": "batches braces convert flow kinds loops models routers",
    "interop/importing/magic_agents": (
        "convert fields flow graphs inner kinds loops models rendered requests"
    ),
    "interop/importing/mermaid": "flowchart syntax",
    "interop/importing/n8n": (
        "branches conditions control fields kinds models placement schemas triggers"
    ),
    "interop/importing/sandcastle": "references settings workflow",
    "interop/importing/dify": "assignments flow policies starts steps values",
    "interop/mcp_server": (
        "access arguments calls http open_calls outcomes progress resources results server "
        "tool_list"
    ),
    "interop/openai": ("chat_format chat_request errors responses_format responses_request"),
    "mcp": "session tool_lists",
    "nodes": "model_choice services",
    "nodes/agents": "caller tool_names",
    "nodes/authoring": "entry_points signatures",
    "nodes/checking": "node_view tool_schemas",
    "nodes/library": (
        "boolean chat_start end json_ number parser schedule start text tool_approval toolset"
    ),
    "nodes/tools": "http_bodies tool_node",
    "outbound": "body",
    "planner": "revised_plan",
    "providers": "capabilities error_bodies protocols refusals",
    "providers/local": "process",
    "providers/resilience": "shares",
    "providers/streams": "compression errors events finish_reasons readers tool_calls usage",
    "service": "access_tokens links quotas",
    "service/carriers": "carrier execution_workflow local temporal",
    "service/chats": (
        "chat_documents chat_service configurations message_tree node_memory replies reply_runs"
    ),
    "service/executions": "carried execution_service input_sets option_limits plan_edits",
    "service/flows": "flow_queries flow_tools",
    "service/library": "arguments commands event_loops stores",
    "service/notifications": "documents messages notification_service",
    "service/plans": "revisions",
    "service/queries": "answered caller_failures dependency_view",
    "service/streaming": "delta_coalescing stored_execution",
    "service/triggers": "event_streams forms payloads reply_nodes running trigger_service",
    "shapes": "catalog chats common executions graphs imports nodes openai plans spend streams triggers",
    "storage": (
        "access_tokens call_documents chats errors leadership links notices notifications triggers"
    ),
    "storage/postgres": "appends holder sessions transactions",
    "storage/sql": "appends execution_facts locks outbox queries schema store",
    "storage/sqlite": "memory migrations transactions",
    "storage/sql/stores": (
        "access_tokens approved_tools chats input_sets links notifications revisions spend triggers"
    ),
    "triggers": "adapter webhook_answers webhooks",
}
"""The modules without a test file of their own, by folder: tested through their users, or by suites."""


@pytest.mark.parametrize("path", TEST_FILES, ids=str)
def test_a_test_file_is_named_after_a_module_of_the_folder_it_mirrors(path: Path) -> None:
    """``test_NAME.py`` or ``test_NAME_ASPECT.py``; NAME may be a package of that folder too."""
    folder = PACKAGE / path.parent
    names = {each.stem.strip("_") for each in folder.iterdir() if each.name != "__pycache__"}
    named = path.stem.removeprefix("test_").strip("_")
    assert any(named == name or named.startswith(f"{name}_") for name in names), sorted(names)


def test_a_module_has_a_test_file_or_is_listed_as_without_one() -> None:
    """The list only gets shorter: a new module has a test file, one that gets one leaves the list."""
    named: dict[Path, set[str]] = {}
    for path in TEST_FILES:
        named.setdefault(path.parent, set()).add(path.stem.removeprefix("test_").strip("_"))
    without = {
        module.with_suffix("").as_posix()
        for path in PACKAGE.rglob("*.py")
        if path.stem != "__init__" and (module := path.relative_to(PACKAGE))
        if not any(
            f"{name}_".startswith(f"{module.stem.strip('_')}_")
            for name in named.get(module.parent, ())
        )
    }
    listed = {
        (Path(folder) / name).as_posix()
        for folder, names in WITHOUT_TEST_FILE.items()
        for name in names.split()
    }
    assert sorted(without - listed) == [], "add a test file for each"
    assert sorted(listed - without) == [], "take these out of WITHOUT_TEST_FILE"


@pytest.mark.slow
def test_every_test_asserts_something() -> None:
    """By itself, or by a function of the tests that does and that it calls."""
    functions = [
        (path, each, *_asserted(each))
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for each in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    asserting = {each.name for _, each, is_asserted, _ in functions if is_asserted}
    idle = [
        f"{path.relative_to(ROOT)}:{each.lineno} {each.name}"
        for path, each, is_asserted, called in functions
        if each.name.startswith("test_") and not is_asserted and not called & asserting
    ]
    assert idle == []


def _asserted(function: ast.AST) -> tuple[bool, set[str]]:
    """Return whether a function asserts something itself, and the names that it calls."""
    inside = list(ast.walk(function))
    called = {
        each.func.attr if isinstance(each.func, ast.Attribute) else getattr(each.func, "id", "")
        for each in inside
        if isinstance(each, ast.Call)
    }
    is_asserted = any(isinstance(each, ast.Assert) for each in inside)
    return is_asserted or bool(called & {"raises", "warns", "fail", "expect"}), called


def test_the_same_literals_have_one_order() -> None:
    # typing returns what it made first for ``X | None`` of equal literals, so that the order in the
    # OpenAPI document would follow the order of imports.
    orders: dict[frozenset[str], set[tuple[str, ...]]] = {}
    for path in (ROOT / "planwave").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("Literal"):
                values = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                order = tuple(map(ast.unparse, values))
                orders.setdefault(frozenset(order), set()).add(order)
    assert len(orders) > 20
    assert [each for each in orders.values() if len(each) > 1] == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports for the type checker alone do not count; ``CycleError`` names the modules."""
    graph = grimp.build_graph("planwave", exclude_type_checking_imports=True, cache_dir=None)
    TopologicalSorter(
        {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    ).prepare()
