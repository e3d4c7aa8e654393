from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from planwave.config.files import load_settings
from planwave.errors import InputError
from planwave.settings import Limits, McpServerSettings, Settings, unknown_variables


def bounds(name: str) -> tuple[float | None, float]:
    """Give the least value of a limit, if any, and its hard cap."""
    least, cap = None, None
    for rule in Limits.model_fields[name].metadata:
        least = getattr(rule, "ge", least)
        cap = getattr(rule, "le", cap)
    assert cap is not None, f"limit {name} has no hard cap"
    return least, cap


@pytest.mark.parametrize("name", sorted(Limits.model_fields))
def test_a_limit_may_be_set_up_to_its_hard_cap_and_no_further(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, cap = bounds(name)
    monkeypatch.setenv(f"PLANWAVE_LIMIT_{name.upper()}", str(cap))
    assert getattr(Limits(), name) == cap
    monkeypatch.setenv(f"PLANWAVE_LIMIT_{name.upper()}", str(cap + 1))
    with pytest.raises(ValidationError):
        Limits()


@pytest.mark.parametrize("name", sorted(Limits.model_fields))
def test_a_limit_has_a_least_value(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    least, _ = bounds(name)
    monkeypatch.setenv(f"PLANWAVE_LIMIT_{name.upper()}", str(-1 if least is None else least - 1))
    with pytest.raises(ValidationError):
        Limits()


def test_the_environment_beats_the_file_and_the_file_beats_the_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "planwave.toml"
    file.write_text('provider = "mine"\nmodel = "m1"\n[limits]\nnodes = 7\nedges = 8\n')
    monkeypatch.setenv("PLANWAVE_MODEL", "m2")
    monkeypatch.setenv("PLANWAVE_LIMIT_EDGES", "9")
    settings = load_settings(file)
    assert (settings.provider, settings.model) == ("mine", "m2")
    assert (settings.limits.nodes, settings.limits.edges, settings.limits.depth) == (7, 9, 100)


def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PLANWAVE_PROVIDER", "OPENAI_API_KEY", "PLANWAVE_LIMIT_NODES"):
        monkeypatch.setenv(name, "")
    settings = Settings()
    assert (settings.provider, settings.openai_api_key, settings.limits.nodes) == (None, None, 200)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("provider = ", "planwave.toml"),
        ("providr = 'x'", "providr"),
        ("[limits]\nnodes = 0", r"setting limits\.nodes has to be at least 1"),
        ("[limits]\nnods = 1", "nods"),
        ("[providers.x]\nkind = 'other'", "providers.x.kind"),
    ],
)
def test_an_unusable_file_is_an_error_that_names_the_place(
    tmp_path: Path, text: str, named: str
) -> None:
    file = tmp_path / "planwave.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=named):
        load_settings(file)


@pytest.mark.parametrize(
    ("text", "near"),
    [("node_module = []", "node_modules"), ("[limits]\nnods = 1", "nodes"), ("zzz = 1", None)],
)
def test_an_unknown_setting_comes_with_the_closest_one(
    tmp_path: Path, text: str, near: str | None
) -> None:
    file = tmp_path / "planwave.toml"
    file.write_text(text)
    with pytest.raises(InputError, match="is not known here") as caught:
        load_settings(file)
    assert caught.value.hint == (f"did you mean {near!r}? " if near else "") + f"look in {file}"


@pytest.mark.parametrize("name", ["PLANWAVE_PORT", "PLANWAVE_LIMIT_NODES"])
def test_an_unusable_variable_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(name, "many")
    with pytest.raises(InputError, match="has to be a whole number") as caught:
        load_settings()
    assert name in str(caught.value.hint)


@pytest.mark.parametrize(
    ("written", "names"),
    [("mine", ["mine"]), ("mine, pkg.more,", ["mine", "pkg.more"]), ('["mine"]', ["mine"])],
)
def test_a_list_in_the_environment_is_names_or_json(
    monkeypatch: pytest.MonkeyPatch, written: str, names: list[str]
) -> None:
    monkeypatch.setenv("PLANWAVE_NODE_MODULES", written)
    monkeypatch.setenv("PLANWAVE_ALLOWED_HOSTS", written)
    settings = Settings()
    assert settings.node_modules == settings.allowed_hosts == names


def test_a_list_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLANWAVE_NODE_MODULES", "[mine]")
    with pytest.raises(InputError, match=r"setting node_modules: .*separated by commas") as caught:
        load_settings()
    assert "PLANWAVE_NODE_MODULES" in str(caught.value.hint)


def test_services_are_hosts_with_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    written = "Wiki.internal, db.internal:9200, 10.0.0.1:80, [::1]:8080"
    monkeypatch.setenv("PLANWAVE_ALLOWED_OUTBOUND", written)
    assert Settings().allowed_outbound == written.lower().split(", ")


@pytest.mark.parametrize(
    "written", ["http://wiki", "wiki/", "wiki:", "wiki:x", "wiki:0", "wiki:65536", "u@wiki", "*"]
)
def test_what_is_no_service_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLANWAVE_ALLOWED_OUTBOUND", f"fine,{written}")
    with pytest.raises(InputError, match=r"setting allowed_outbound.*write host or host:port"):
        load_settings()


@pytest.mark.parametrize(
    ("template", "is_taken"),
    [
        ("https://jaeger.example/trace/{trace_id}", True),
        ("HTTP://10.0.0.1:16686/t?id={trace_id}&again={trace_id}", True),
        ("https://jaeger.example/trace/", False),
        ("https://jaeger.example/{trace}/{trace_id}", False),
        ("https://jaeger.example/{}{trace_id}", False),
        ("https://jaeger.example/{trace_id}}", False),
        ("https://jaeger.example/{trace_id} x", False),
        ("javascript:alert('{trace_id}')", False),
        ("//jaeger.example/{trace_id}", False),
        ("https:///{trace_id}", False),
        ("{trace_id}", False),
    ],
)
def test_the_page_of_a_trace_is_an_address_with_its_id(
    template: str, is_taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANWAVE_TRACING_URL_TEMPLATE", template)
    if is_taken:
        assert load_settings().tracing_url_template == template
        return
    with pytest.raises(InputError, match=r"tracing_url_template.*\{trace_id\}"):
        load_settings()


def test_outbound_hosts_are_names_and_all_hosts_below_a_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert Settings().outbound_hosts is None
    monkeypatch.setenv("PLANWAVE_OUTBOUND_HOSTS", "Example.com, *.shop.example, [::1]")
    assert Settings().outbound_hosts == ["example.com", "*.shop.example", "[::1]"]
    assert Settings(outbound_hosts=[]).outbound_hosts == ["example.com", "*.shop.example", "[::1]"]
    monkeypatch.delenv("PLANWAVE_OUTBOUND_HOSTS")
    assert Settings(outbound_hosts=[]).outbound_hosts == []


@pytest.mark.parametrize(
    "written", ["https://wiki", "wiki:443", "*", "*.", "a.*.b", "u@wiki", "a b"]
)
def test_what_is_no_host_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLANWAVE_OUTBOUND_HOSTS", f"fine,{written}")
    with pytest.raises(InputError, match=r"setting outbound_hosts.*example.com or \*.example.com"):
        load_settings()


def test_node_modules_are_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "planwave.toml").write_text('node_modules = ["mine", "pkg.more"]\n')
    assert load_settings(tmp_path / "planwave.toml").node_modules == ["mine", "pkg.more"]


def test_a_named_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        load_settings(tmp_path / "none.toml")


def test_secrets_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-000111")
    assert "canary" not in repr(Settings()) + str(Settings()) + Settings().model_dump_json()


@pytest.mark.parametrize("name", Limits.model_fields)
def test_a_limit_says_what_it_limits(name: str) -> None:
    said = Limits.model_fields[name].description
    assert said
    assert said.endswith(".")


def test_a_storage_below_the_home_directory_is_there_wherever_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    (tmp_path / "planwave.toml").write_text('storage_dir = "~/kept"\n')
    assert load_settings(tmp_path / "planwave.toml").storage_dir == Path("/home/somebody/kept")
    monkeypatch.setenv("PLANWAVE_STORAGE_DIR", "~/other")
    assert load_settings(tmp_path / "planwave.toml").storage_dir == Path("/home/somebody/other")


def mcp_error(tmp_path: Path, table: str) -> InputError:
    file = tmp_path / "planwave.toml"
    file.write_text(f"[mcp.box]\n{table}")
    with pytest.raises(InputError) as caught:
        load_settings(file)
    return caught.value


@pytest.mark.parametrize(
    ("table", "named"),
    [
        ("", "mcp.box: write either command (a program to start) or url, and not both"),
        ("command = 'x'\nurl = 'http://h/'", "mcp.box: write either command"),
        ("command = 'x'\nheader_env = {A = 'B'}", "header_env is not for a server with a command"),
        ("url = 'http://h/'\nargs = ['x']", "args is not for a server with a url"),
        ("command = './server.sh'", "mcp.box.command: write a name that is found on PATH"),
        ("command = '/bin/sh -c id'", "mcp.box.command: name a program only"),
        ("command = ' '", "mcp.box.command: name a program only"),
        ("command = 'x'\ncwd = 'here'", "mcp.box.cwd: write an absolute path"),
        ("command = 'x'\nargs = 'a b'", "mcp.box.args has to be an array"),
        ("command = 'x'\nenv = {'A B' = 'c'}", "'A B' is not the name of an environment variable"),
        ("command = 'x'\nheaders = {}", "mcp.box.headers is not known here"),
        *(
            (f"command = 'x'\nenv = {{{name} = 'hush-hush'}}", f"{name} decides which code")
            for name in (
                "LD_PRELOAD",
                "DYLD_INSERT_LIBRARIES",
                "PYTHONPATH",
                "NODE_OPTIONS",
                "PATH",
            )
        ),
        ("command = 'x'\npass_env = ['LD_PRELOAD']", "LD_PRELOAD decides which code"),
    ],
)
def test_an_mcp_server_that_cannot_be_is_an_error_at_its_place(
    tmp_path: Path, table: str, named: str
) -> None:
    error = mcp_error(tmp_path, table)
    assert named in error.message
    assert "hush-hush" not in f"{error.message}{error.hint}{error.__cause__.__class__}"


@pytest.mark.parametrize("name", ["a b", "1x", "x" * 41, "a.b"])
def test_names_of_mcp_servers_are_plain(tmp_path: Path, name: str) -> None:
    file = tmp_path / "planwave.toml"
    file.write_text(f"[mcp.'{name}']\ncommand = 'x'")
    with pytest.raises(InputError, match="is no name: use letters"):
        load_settings(file)


def test_secrets_of_mcp_servers_are_shown_nowhere(tmp_path: Path) -> None:
    file = tmp_path / "planwave.toml"
    file.write_text("[mcp.box]\ncommand = '/opt/with space/x'\nenv = {KEY = 'hush-hush'}")
    with pytest.raises(InputError, match="name a program only"):
        load_settings(file)
    file.write_text("[mcp.box]\ncommand = 'x'\nenv = {KEY = 'hush-hush'}")
    settings = load_settings(file)
    assert settings.mcp["box"].env["KEY"].get_secret_value() == "hush-hush"
    assert "hush-hush" not in f"{settings!r} {settings.model_dump()} {settings.model_dump_json()}"


def test_variables_that_mcp_servers_get_are_known() -> None:
    box = McpServerSettings(command="x", pass_env=["PLANWAVE_BOX_KEY"])
    web = McpServerSettings(url="http://h/", header_env={"Authorization": "PLANWAVE_WEB_KEY"})
    names = ["PLANWAVE_BOX_KEY", "PLANWAVE_WEB_KEY", "PLANWAVE_OTHER"]
    assert list(unknown_variables(names, Settings(mcp={"box": box, "web": web}))) == [
        "PLANWAVE_OTHER"
    ]
