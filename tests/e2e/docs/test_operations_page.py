"""docs/operations.md is true, and so are Dockerfile and compose.yaml, as far as a test can tell."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml  # schemathesis brings it
from typer.main import get_command

from planwave.api.streaming.sse import PING_INTERVAL_S
from planwave.cli.app import app
from planwave.config.files import load_settings
from planwave.log_records import FIELDS
from planwave.settings import CONFIG_VARIABLE, DEBUG_VARIABLE, URL_VARIABLE, Limits, Settings
from tests.support.cli.command_process import (
    isolated_directory,
    read_until,
    run_command,
    start_command,
)
from tests.support.cli.doc_page import PageReader, blocks, commands
from tests.support.llm.fake_llm_server import ErrorReply, fake_llm_in_thread, prompt_of
from tests.support.paths import ROOT
from tests.support.processes.forked_process import ForkedProcess
from tests.support.server.metrics_scrape import MetricsScrape
from tools.gen_config_tables import updated

DOCUMENT = (ROOT / "docs" / "operations.md").read_text("utf-8")
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]["planwave"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
TOKEN, KEY = "a long random text", "sk-canary-0123456789"


def block(language: str) -> str:
    """Give the fenced blocks of one language."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", DOCUMENT, re.DOTALL | re.MULTILINE)
    assert found, language
    return "\n".join(found)


def variables() -> set[str]:
    """Give the environment variables that are settings."""
    names = {f"PLANWAVE_LIMIT_{name.upper()}" for name in Limits.model_fields}
    for name, field in Settings.model_fields.items():
        alias = field.validation_alias
        names.add(alias if isinstance(alias, str) else f"PLANWAVE_{name.upper()}")
    return names


def instructions() -> list[tuple[str, str]]:
    """Give the Dockerfile's instructions, each with what follows on its line or lines."""
    lines = [line for line in DOCKERFILE.splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    found = [line.split(None, 1) for line in joined.splitlines() if line.strip()]
    return [(name, rest) for name, rest in found]


def following(instruction: str) -> list[str]:
    """Give what follows each instruction of one name."""
    return [rest for name, rest in instructions() if name == instruction]


# -- the document ------------------------------------------------------------------------------


def test_tables_are_up_to_date() -> None:
    assert updated(DOCUMENT) == DOCUMENT, "bring it up to date: python tools/gen_config_tables.py"


def test_every_setting_has_a_description() -> None:
    rows = [line.split(" | ") for line in DOCUMENT.splitlines() if re.match(r"\| `\w+` \| ", line)]
    assert len(rows) > len(Limits.model_fields) + 15
    assert [row[0] for row in rows if not row[-1].strip(" |")] == []


def test_named_variables_are_settings() -> None:
    named = set(re.findall(r"\b(?:PLANWAVE|OPENAI|ANTHROPIC)_[A-Z_]*[A-Z]\b", DOCUMENT))
    assert len(named) > 60
    assert named - variables() == {CONFIG_VARIABLE, DEBUG_VARIABLE, URL_VARIABLE}


def test_named_metrics_are_in_the_table() -> None:
    table = DOCUMENT.split("<!-- table: metrics -->")[1].split("<!-- end of table -->")[0]
    known = set(re.findall(r"^\| `(\w+)` ", table, re.MULTILINE))
    assert {"planwave_executions_queued", "planwave_event_lag_seconds"} <= known
    named = set(re.findall(r"planwave_[a-z_]+", DOCUMENT.replace(table, "")))
    assert named - {FIELDS} <= known


def test_table_of_notifications_is_valid(tmp_path: Path) -> None:
    shown = re.findall(r"```toml\n(.*?)```", DOCUMENT, re.DOTALL)
    (table,) = [each for each in shown if "[notifications.ops]" in each]
    (tmp_path / "planwave.toml").write_text(table, "utf-8")
    settings = load_settings(tmp_path / "planwave.toml")
    assert settings.notifications["ops"].events == ["failed", "waiting"]
    assert set(settings.notifications["ops"].secrets) <= set(settings.secrets)


def test_settings_file_is_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolated_directory(tmp_path, monkeypatch)
    (tmp_path / "planwave.toml").write_text(block("toml"), "utf-8")
    monkeypatch.setenv("PLANWAVE_CONFIG", "planwave.toml")
    settings = load_settings()
    assert (settings.retention_days, settings.limits.concurrent_executions) == (90, 20)
    (shown,) = re.findall(r"^\$ export (PLANWAVE_ALLOWED_HOSTS=.*)$", DOCUMENT, re.MULTILINE)
    monkeypatch.setenv(*shlex.split(shown)[0].split("=", 1))
    assert load_settings().allowed_hosts == ["planwave.example.com"]


def test_first_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ExitStack() as resources:
        reader = PageReader(tmp_path, monkeypatch, resources)
        serve, ready = commands(next(each["text"] for each in blocks(DOCUMENT)))
        reader.run(serve.line)
        assert json.loads(reader.run(ready.line)) == {"status": "ok"}


def test_proxy_timeouts_exceed_pings_and_body_sizes_match() -> None:
    nginx = block("nginx")
    (retry_policy,) = re.findall(r"proxy_read_timeout (\d+)s;", nginx)
    assert int(retry_policy) > 2 * max(PING_INTERVAL_S, Limits().socket_ping_s)
    (size,) = re.findall(r"client_max_body_size (\d+)m;", nginx)
    assert int(size) * 1024 * 1024 == Limits().body_bytes
    assert "proxy_buffering off;" in nginx


def test_stop_timeouts_exceed_the_drain_timeout() -> None:
    (unit,) = re.findall(r"^TimeoutStopSec=(\d+)$", block("ini"), re.MULTILINE)
    (compose,) = re.findall(r"(\d+)s", COMPOSE["stop_grace_period"])
    assert min(int(unit), int(compose)) >= Limits().drain_s + 5


def test_scrape_configuration_names_the_address_and_the_token() -> None:
    (job,) = yaml.safe_load(block("yaml"))["scrape_configs"]
    assert job["static_configs"] == [{"targets": [f"{Settings().host}:{Settings().port}"]}]
    assert "credentials_file" in job["authorization"]


def test_internal_links_exist() -> None:
    heads = re.findall(r"^#+ (.*)$", DOCUMENT, re.MULTILINE)
    anchors = {re.sub(r"[^a-z0-9 -]", "", head.lower()).replace(" ", "-") for head in heads}
    links = re.findall(r"\]\(#([^)]+)\)", DOCUMENT)
    assert len(links) > 10
    assert set(links) - anchors == set()


def test_named_commands_exist() -> None:
    commands = getattr(get_command(app), "commands", {})
    prompted = re.findall(r"^\$ (planwave .*)$", DOCUMENT, re.MULTILINE)
    words = [line.split()[1] for line in [*prompted, *re.findall(r"`(planwave \w.*?)`", DOCUMENT)]]
    assert {"serve", "backup", "prune", "doctor"} <= set(words) <= set(commands)


# -- the image ---------------------------------------------------------------------------------


def test_image_has_the_files_it_is_built_from() -> None:
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    let_in = {line[1:] for line in ignored if line.startswith("!")}
    assert "*" in ignored
    copied: set[str] = set()
    for rest in following("COPY"):
        *sources, _ = [word for word in shlex.split(rest) if not word.startswith("--")]
        if "--from=" not in rest:
            copied.update(sources)
    assert copied == let_in
    assert [name for name in copied if not (ROOT / name).exists()] == []
    needed = {PROJECT["readme"], *PROJECT["license-files"], "pyproject.toml", "planwave"}
    assert needed <= copied


def test_image_uses_supported_python_and_unprivileged_user() -> None:
    least = PROJECT["requires-python"].removeprefix(">=")
    defaults = dict(rest.split("=", 1) for rest in following("ARG"))
    images = (rest.split()[0].removeprefix("${").removesuffix("}") for rest in following("FROM"))
    node, *stages = (defaults[image] for image in images)
    assert node.startswith("node:")  # builds the web UI
    assert set(stages) == {f"python:{least}-slim"}
    (user,) = following("USER")
    assert any(
        rest.startswith("useradd ") and rest.endswith(f" {user}") for rest in following("RUN")
    )


def test_image_command_and_settings_exist() -> None:
    program, *words = json.loads(following("CMD")[-1])
    assert program == "planwave"
    assert words[0] in getattr(get_command(app), "commands", {})
    given = dict(re.findall(r"([A-Z_]+)=(\S+)", " ".join(following("ENV"))))
    ours = {name: value for name, value in given.items() if name.startswith("PLANWAVE_")}
    assert set(ours) <= variables()
    (volume,) = following("VOLUME")
    assert ours["PLANWAVE_STORAGE_DIR"].startswith(f"{volume}/")
    assert following("EXPOSE") == [ours["PLANWAVE_PORT"]]
    assert given["PATH"].split(":")[0] == "/opt/planwave/bin"


def test_image_does_not_start_without_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    isolated_directory(tmp_path, monkeypatch)
    monkeypatch.setenv("PLANWAVE_HOST", "0.0.0.0")  # noqa: S104 - what is refused
    monkeypatch.setenv("PLANWAVE_TOKEN", "")
    done = run_command("serve")
    assert (done.returncode, list(tmp_path.iterdir())) == (2, [])
    assert "PLANWAVE_TOKEN" in done.stderr


def test_compose_settings_exist_and_token_is_required() -> None:
    environment: dict[str, str] = COMPOSE["environment"]
    assert set(environment) <= {*variables(), CONFIG_VARIABLE}
    requested = {
        name: re.fullmatch(r"\$\{(\w+):([?-])(.*)\}", v) for name, v in environment.items()
    }
    fixed = {name for name, found in requested.items() if found is None}
    assert fixed == {"PLANWAVE_STORAGE_DIR"}
    assert all(found[1] == name for name, found in requested.items() if found)
    assert [name for name, found in requested.items() if found and found[2] == "?"] == [
        "PLANWAVE_TOKEN"
    ]


def test_compose_volume_matches_image_and_root_is_read_only() -> None:
    (volume,) = following("VOLUME")
    assert COMPOSE["volumes"] == [f"planwave:{volume}"]
    assert COMPOSE["read_only"] is True
    assert COMPOSE["cap_drop"] == ["ALL"]
    assert COMPOSE["security_opt"] == ["no-new-privileges:true"]
    (port,) = following("EXPOSE")
    assert COMPOSE["ports"] == [f"127.0.0.1:8000:{port}"], "published on loopback alone"


def test_unit_and_compose_have_the_same_limits_of_memory_and_processes() -> None:
    unit = dict(re.findall(r"^(MemoryMax|TasksMax)=(\w+)$", block("ini"), re.MULTILINE))
    (memory,) = re.findall(r":-(\w+)\}$", COMPOSE["mem_limit"])
    assert unit == {"MemoryMax": memory.upper(), "TasksMax": str(COMPOSE["pids_limit"])}


# -- a service, operated -----------------------------------------------------------------------

PACKAGE = """
from planwave.errors import NodeError
from planwave.graph.protocols import ExecutionResult
from planwave.graph.model import DataValue
from tests.support.nodes.linked_nodes import LinkConsumer, LinkedSource

class Flaky:
    node_type = "flaky"
    async def execute(self, data, inputs, context):
        if context.attempt == 1:
            raise NodeError("not yet", retryable=True)
        return ExecutionResult({"output": DataValue("text", "there")})

types = [LinkedSource(), LinkConsumer(), Flaky()]
"""


def installed(site: Path) -> Path:
    """Lay out a package of node types as an installer does."""
    info = site / "planwave_odd-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "planwave_odd.py").write_text(PACKAGE, "utf-8")
    head = "Metadata-Version: 2.1\nName: planwave-odd\nVersion: 1.0\n"
    (info / "METADATA").write_text(head, "utf-8")
    points = "[planwave.nodes]\nodd = planwave_odd:types\n"
    (info / "entry_points.txt").write_text(points, "utf-8")
    return site


def wire(source: str, target: str, channel: str = "flow", **handles: str) -> dict[str, Any]:
    return {"source": source, "target": target, "data": {"channel": channel}, **handles}


def agent(name: str, prompt: str) -> dict[str, Any]:
    data = {"provider": "openai", "model": "gpt-4o-mini", "userPrompt": prompt}
    return {"id": name, "type": "agent", "data": data}


LINK = {"channel": "link", "sourceHandle": "water", "targetHandle": "water"}
GRAPH = {
    "nodes": [
        agent("busy", "be busy first"),
        agent("wrong", "be wrong"),
        {"id": "after", "type": "text", "data": {"text": "{{ input }}"}},
        {"id": "flaky", "type": "flaky", "policy": {"retry": {"attempts": 2}}},
        {"id": "well", "type": "well"},
        {"id": "one", "type": "drinker"},
        {"id": "two", "type": "drinker"},
    ],
    "edges": [wire("wrong", "after"), wire("well", "one", **LINK), wire("well", "two", **LINK)],
}


@contextmanager
def serve() -> Iterator[tuple[ForkedProcess, httpx2.Client]]:
    """Start ``planwave serve`` on a free loopback port, and leave none behind."""
    with start_command("serve", "--port", "0", "--json") as process:
        try:
            url = json.loads(read_until(process.stdout, "\n"))["url"]
            bearer = {"Authorization": f"Bearer {TOKEN}"}
            with httpx2.Client(base_url=url, headers=bearer, timeout=120, trust_env=False) as http:
                yield process, http
        finally:
            process.kill()


def healthcheck(port: int | None) -> int:
    """Run the image's own health check; give its exit code."""
    (health,) = following("HEALTHCHECK")
    command = json.loads(health.split("CMD ", 1)[1])
    assert command[0] == "python"
    environment = {**os.environ, "PLANWAVE_PORT": str(port)}
    done = subprocess.run(
        [sys.executable, *command[1:]], env=environment, capture_output=True, check=False
    )
    return done.returncode


def until_over(http: httpx2.Client, execution_id: str) -> None:
    """Follow an execution until it is over."""
    received = http.get(f"/api/executions/{execution_id}/events").text
    assert "event: execution.failed" in received


def scraped(http: httpx2.Client) -> MetricsScrape:
    answer = http.get("/metrics")
    assert answer.status_code == 200
    return MetricsScrape(answer.text)


def test_service_is_monitored_backed_up_and_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    isolated_directory(tmp_path, monkeypatch)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{installed(tmp_path / 'site')}")
    requested: list[str] = []

    def reply(body: dict[str, Any]) -> str | ErrorReply:
        requested.append(prompt_of(body))
        if "wrong" in requested[-1]:
            return ErrorReply(400, "invalid_request_error")
        if sum("busy" in each for each in requested) == 1:
            return ErrorReply(429, "rate_limit_exceeded", headers={"retry-after": "0"})
        return "done"

    with fake_llm_in_thread(reply_to=reply) as llm:
        monkeypatch.setenv("PLANWAVE_TOKEN", TOKEN)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", llm.openai_url)
        operate()
    restore(tmp_path, backup())
    shown = run_command("show", "last", "--json")
    assert json.loads(shown.stdout)["status"] == "failed"


def backup() -> str:
    """Return the name of the file that the page backs up into, as a shell reads it."""
    (name,) = re.findall(r"^\$ planwave backup (\S.*)$", DOCUMENT, re.M)
    return subprocess.check_output(["sh", "-c", f"echo {name}"], text=True).strip()


def restore(directory: Path, archive: str) -> None:
    """Run the commands of the page that restore a backup, as far as they need no systemd."""
    (shown,) = re.findall(r"^To restore:\n\n```console\n(.*?)^```$", DOCUMENT, re.M | re.S)
    script = re.sub(r"^\$ (systemctl .*\n)?", "", shown, flags=re.M)
    script = re.sub(r"planwave-[0-9-]+\.tgz", archive, script)
    script = script.replace("/var/lib/planwave", str(directory))
    assert script.count("\n") == 4
    subprocess.run(["sh", "-e", "-c", script], check=True)


def operate() -> None:
    """Start a service, run the graph above, look at it from all sides, stop it."""
    with serve() as (process, http):
        assert healthcheck(http.base_url.port) == 0
        before = scraped(http)
        answer = http.post("/api/execute", json={"graph": GRAPH, "start": True})
        assert answer.status_code in (200, 201, 202), answer.text
        until_over(http, answer.json()["execution_id"])
        after = scraped(http)
        while not after.value("planwave_link_cache_misses_total"):
            after = scraped(http)  # links are told a moment later, when the execution has left
        check_metrics(before, after)
        assert json.loads(run_command("backup", backup(), "--json").stdout)["executions"] == 1
        refused = run_command("prune", "--older-than", "1")
        assert (refused.returncode, "PLANWAVE_RETENTION_DAYS" in refused.stderr) == (1, True)
        port = http.base_url.port
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
        assert healthcheck(port) != 0
        output = process.stderr.read() if process.stderr is not None else ""
    assert "route=/api/execute status=20" in output
    assert "route=/metrics" not in output, "reads are logged at DEBUG"
    assert (KEY in output, TOKEN in output) == (False, False)


def check_metrics(before: MetricsScrape, after: MetricsScrape) -> None:
    """Check what a scrape tells of one execution of the graph above."""
    assert all(after.monotonic[key] >= value for key, value in before.monotonic.items())
    documented = set(re.findall(r"^\| `(planwave_\w+)` ", DOCUMENT, re.MULTILINE))
    assert set(after.types) == documented

    def nodes(node_type: str, status: str) -> float:
        return after.value("planwave_nodes_total", type=node_type, status=status)

    assert (nodes("agent", "completed"), nodes("agent", "failed")) == (1, 1)
    assert (nodes("text", "blocked"), nodes("drinker", "completed")) == (1, 2)
    assert (nodes("flaky", "completed"), nodes("flaky", "failed")) == (1, 0)
    assert after.value("planwave_node_retries_total", type="flaky") == 1
    assert after.value("planwave_link_cache_hits_total") == 1
    assert after.value("planwave_link_cache_misses_total") == 1
    assert after.value("planwave_executions_ended_total", status="failed", flow="") == 1
    gpt = {"provider": "openai", "model": "gpt-4o-mini"}
    calls = "planwave_provider_calls_total"
    for outcome in ("rate-limited", "completed", "bad-request"):
        assert after.value(calls, **gpt, outcome=outcome) == 1, outcome
    assert after.value("planwave_provider_retries_total", **gpt) == 1
    assert after.value("planwave_provider_tokens_total", **gpt, direction="output") > 0
    assert after.value("planwave_provider_cost_usd_total", **gpt) > 0
    assert after.value("planwave_provider_call_duration_seconds_count", **gpt) == 3
    assert after.value("planwave_store_commit_writes_count") > 3
    assert after.value("planwave_event_lag_seconds_count") > 0
    created = {"route": "/api/execute", "method": "POST", "status": "202"}
    assert after.value("planwave_http_requests_total", **created) == 1
    assert "other" not in after.labels("planwave_http_requests_total", "route")
