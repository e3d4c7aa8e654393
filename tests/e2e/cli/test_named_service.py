"""``--url``: commands work with a service elsewhere, or say that they cannot."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli.command_process import isolated_directory, start_command
from tests.support.cli.command_tree import CommandPath, every_command
from tests.support.cli.in_process_command import invoke, invoke_json
from tests.support.graph.builders import make_graph, text_node
from tests.support.processes.forked_process import ForkedProcess
from tests.support.server.running_server import RunningServer, running_server

GRAPH = make_graph(text_node("a", "one"), text_node("b", "two"), edges=[("a", "b")]).to_document()
TOKEN = "hush-hush-hush"
NOWHERE = "http://127.0.0.1:1"
HERE_ONLY = {
    "serve", "worker", "mcp", "backup", "prune", "store copy", "migrate", "audit", "audit verify", "model pull", "doctor", "trust",
}  # fmt: skip
NO_PLACE = {"config show", "config path"}
"""What looks at the settings alone."""
MORE = {
    "label": ("--star",),
    "export": ["last", "--to", "mermaid"],
    "flow save": ["graph.json"],
    "refine": ["drop the last step"],
    "notifications resend": ["--all"],
}
"""What these need though neither argument is required."""
COMMANDS = [each for each in every_command() if each.runs]


@pytest.fixture(autouse=True)
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolated_directory(tmp_path, monkeypatch)
    (tmp_path / "graph.json").write_text(json.dumps(GRAPH))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(directory=tmp_path_factory.mktemp("storage"), token=TOKEN) as running:
        yield running


@pytest.mark.parametrize("is_option", [True, False], ids=["--url", "PLANWAVE_URL"])
@pytest.mark.parametrize("path", COMMANDS, ids=lambda each: " ".join(each.words))
def test_every_command_calls_the_service_or_refuses(
    path: CommandPath, is_option: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that is added refuses, until it says that it works over HTTP."""
    if not is_option:
        monkeypatch.setenv("PLANWAVE_URL", NOWHERE)
    words = " ".join(path.words)
    options = [*MORE.get(words, ()), *(["--url", NOWHERE] if is_option else [])]
    done = invoke(*path.arguments(), *options, stdin="hello\n")
    if words in NO_PLACE:
        assert (done.exit_code, NOWHERE in done.output) == (0, words == "config show")
    elif words in HERE_ONLY:
        assert (done.exit_code, "works on this machine" in done.stderr) == (2, True), done.output
    else:
        assert (done.exit_code, NOWHERE in done.stderr) == (5, True), done.output
    assert not Path("storage").exists()


@pytest.mark.parametrize("path", COMMANDS, ids=lambda each: " ".join(each.words))
def test_no_command_takes_two_places(path: CommandPath) -> None:
    if " ".join(path.words) not in HERE_ONLY:
        done = invoke(*path.arguments(), "--url", NOWHERE, "--storage", "here")
        assert (done.exit_code, "name two places" in done.stderr) == (2, True), done.output


def test_a_place_of_the_environment_is_named_in_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANWAVE_URL", NOWHERE)
    assert "unset PLANWAVE_URL" in invoke("ls", "--storage", "here").stderr
    assert "unset PLANWAVE_URL" in invoke("doctor").stderr
    monkeypatch.setenv("PLANWAVE_URL", "")
    assert invoke("ls").exit_code == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--url", ""], "--url is empty"),
        (["--url", "nonsense"], "the address of the service cannot be used"),
        (["--url", "http://me:secret@127.0.0.1:1"], "the address of the service cannot be used"),
        (["--url", NOWHERE, "--token-file", ""], "--token-file is empty"),
        (["--url", NOWHERE, "--token-file", "none"], "token file 'none' cannot be read"),
        (["--url", NOWHERE, "--token-file", "empty"], "the token is empty"),
        (["--token-file", "empty"], "--token-file needs the address of a service"),
    ],
)
def test_a_wrong_place_is_a_wrong_usage(options: list[str], words: str) -> None:
    Path("empty").write_text("\n")
    done = invoke("ls", *options)
    assert (done.exit_code, words in done.stderr) == (2, True), done.output
    assert "secret" not in done.output


@pytest.fixture(params=["file", "environment"])
def at_service(
    request: pytest.FixtureRequest, server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """The options that name the service, with its token from a file or from the environment."""
    if request.param == "file":
        Path("token").write_text(f"{TOKEN}\n")
        return ["--url", f"{server.base_url}/", "--token-file", "token"]
    monkeypatch.setenv("PLANWAVE_TOKEN", TOKEN)
    return ["--url", server.base_url]


def test_a_run_is_started_shown_and_listed_at_the_service(
    at_service: list[str], server: RunningServer
) -> None:
    def said(*args: str) -> Any:
        return invoke_json(*args, *at_service)

    ran = said("exec", "graph.json")
    execution_id = ran["execution_id"]
    assert ran["status"] == "completed"
    assert said("show", "last")["execution_id"] == execution_id
    assert said("show", execution_id[-6:])["execution_id"] == execution_id
    assert execution_id in [each["execution_id"] for each in said("ls")["executions"]]
    assert said("watch", execution_id)["status"] == "completed"
    assert said("explain", execution_id, "a")["path"] == "a"
    again = said("fork", execution_id, "--set", "b.text=three")
    assert said("promote", again["execution_id"])["revision"] == 2
    assert said("diff", execution_id, again["execution_id"])["a"] == execution_id
    assert said("check", "graph.json")["graph"]["nodes"]
    assert "agent" in [each["node_type"] for each in said("nodes")["node_types"]]
    assert said("nodes", "text")["origin"]["name"] == server.base_url
    assert said("tools") == {"tools": []}
    assert said("delete", again["execution_id"])["kind"] == "execution"
    text = invoke("show", execution_id, *at_service).stdout
    assert "Stored in" not in text
    assert not Path("storage").exists()


def test_hints_name_the_service_and_no_token(server: RunningServer) -> None:
    Path("token").write_text(TOKEN)
    at = ["--url", server.base_url, "--token-file", "token"]
    done = invoke("plan", "texts", *at)
    assert f"--url {server.base_url} --token-file token" in done.stdout
    assert TOKEN not in done.output


def test_a_wrong_token_is_refused_with_the_way_out(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANWAVE_TOKEN", "wrong-wrong-wrong")
    done = invoke("ls", "--url", server.base_url)
    assert done.exit_code == 2
    assert "--token-file FILE" in done.stderr
    assert "wrong-wrong" not in done.output


def test_the_token_of_a_settings_file_is_not_sent_to_another_service(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("mine.toml").write_text(f'token = "{TOKEN}"\n')
    done = invoke("ls", "--url", server.base_url, "--config", "mine.toml")
    assert done.exit_code == 2, done.output


@pytest.mark.slow
@pytest.mark.parametrize("command", ["exec", "watch"])
def test_a_client_that_lost_its_service_says_how_to_find_the_execution(command: str) -> None:
    slow = {"nodes": [{"id": "w", "type": "wait", "data": {"seconds": 600}}], "edges": []}
    Path("slow.json").write_text(json.dumps(slow))
    with (
        Path("log").open("w") as log,
        start_command("serve", "--port", "0", "--json", stderr=log.fileno()) as service,
    ):
        assert service.stdout is not None
        url = json.loads(service.stdout.readline())["url"]
        with start_command("exec", "slow.json", "--url", url) as first:
            while not (executions := invoke_json("ls", "--url", url)["executions"]):
                time.sleep(0.1)
            execution_id = executions[0]["execution_id"]
            if command == "exec":
                _lose(service, first, execution_id, url)
            else:
                first.kill()
                with start_command("watch", execution_id, "--url", url) as client:
                    assert client.stdout is not None
                    client.stdout.readline()
                    _lose(service, client, execution_id, url)


def _lose(service: ForkedProcess, client: ForkedProcess, execution_id: str, url: str) -> None:
    """Kill the service; check how the client ends."""
    service.kill()
    _, errors = client.communicate()
    assert client.returncode == 5, errors
    assert f"planwave watch {execution_id} --url {url}" in errors
