"""Which file a setting may come from: each setting, in each file."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planwave.config import trust
from planwave.config.files import MAX_BYTES, load_settings, own_file, read_settings
from planwave.errors import InputError
from planwave.nodes.registry import Registry
from planwave.settings import Limits, Settings, narrows
from tests.support.paths import ROOT

FILE = Path("planwave.toml")
TABLES = {
    "providers": "[providers.x]\nbase_url = 'http://x/'\n",
    "mcp": "[mcp.x]\ncommand = 'sh'\n",
    "secrets": "[secrets.x]\nenv = 'AWS_SECRET_ACCESS_KEY'\nhosts = ['x.example']\n",
    "temporal": "[temporal]\naddress = 'temporal.example:7233'\n",
    "notifications": "[notifications.x]\nurl = 'https://x/'\nsecrets = ['x']\n",
}
VALUES = {
    "log_format": '"json"',
    "log_level": '"DEBUG"',
    "log_executions": '"failures"',
    "tracing_content": '"content"',
    "tracing_url_template": '"https://x.example/{trace_id}"',
    "embedded_model": '"never"',
    "root_path": '"/x"',
    "public_url": '"https://x.example"',
    "carrier": '"temporal"',
    "database_url": '"postgresql://x.example/planwave"',
    "allowed_effects": '["read"]',
    "outbound_hosts": '["x.example"]',
}
"""Values of settings that accept no other text or list."""
STRICTER = {
    "require_approval": "true",
    "examples_from_history": "false",
    "unsigned_webhooks": "false",
    "api_docs": "false",
    "allowed_effects": '["read"]',
    "allowed_node_types": '["text"]',
    "outbound_hosts": '["x.example"]',
    "embedded_model": '"never"',
}
"""All settings that an untrusted file may set, and what makes each stricter."""
HIGHER = {"schedule_gap_s", "idempotency_hours", "dead_letter_days"}
"""All limits whose higher value is the stricter one."""
SAID = {
    row[1].strip(" `"): row[5].strip()
    for line in (ROOT / "docs" / "operations.md").read_text("utf-8").splitlines()
    if len(row := line.split("|")) == 8
}
"""What docs/operations.md says that counts in an untrusted file, by the name of a setting or limit."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder from a stranger, and a user without settings who trusts nothing."""
    monkeypatch.setattr(trust, "_of_this_process", set())
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config" / "planwave").mkdir(parents=True)
    (tmp_path / "clone").mkdir()
    monkeypatch.chdir(tmp_path / "clone")
    return tmp_path


def write(text: str, path: Path = FILE) -> Path:
    path.write_text(text, "utf-8")
    path.chmod(0o600)
    return path


def own(folder: Path, text: str) -> Path:
    return write(text, folder / "config" / "planwave" / "planwave.toml")


def sample(name: str) -> str:
    """Return a file that sets a setting to a value other than its default."""
    if name in TABLES:
        return TABLES[name]
    if name in VALUES:
        return f"{name} = {VALUES[name]}"
    field = Settings.model_fields[name]
    annotation = str(field.annotation)
    if "bool" in annotation:
        return f"{name} = {json.dumps(not field.default)}"
    if "int" in annotation or "float" in annotation:
        return f"{name} = {(field.default or 0) + 7}"
    if "list" in annotation:
        return f'{name} = ["other"]'
    assert any(each in annotation for each in ("str", "Secret", "Path")), (
        f"write a value for {name} in VALUES"
    )
    return f'{name} = "/other"'


def spellings(name: str) -> list[str]:
    alias = Settings.model_fields[name].validation_alias
    return [name, *([alias] if isinstance(alias, str) else [])]


FIELDS = [
    (name, spelling)
    for name in Settings.model_fields
    if name != "limits"
    for spelling in spellings(name)
]


@pytest.mark.parametrize(("name", "spelling"), FIELDS, ids=[spelling for _, spelling in FIELDS])
def test_setting_of_an_untrusted_file_does_not_count_unless_it_is_stricter(
    name: str, spelling: str
) -> None:
    write(sample(name).replace(f"{name} =", f"{spelling} ="))
    found = read_settings()
    mark = narrows(Settings.model_fields[name])
    if mark is None:
        assert getattr(found.settings, name) == getattr(Settings(), name)
        assert name not in found.settings.model_fields_set
        assert found.ignored == (name,)
        assert name in (found.notice or "")
        with pytest.raises(InputError, match=name) as refused:
            found.require_trust()
        assert refused.value.code == "settings-untrusted"
        assert "planwave trust" in (refused.value.hint or "")
        assert "--config planwave.toml" in (refused.value.hint or "")
    else:
        assert name in STRICTER
    said = {"true": "`true`", "false": "`false`", '"never"': "`never`"}.get(
        STRICTER.get(name, ""), "fewer"
    )
    assert SAID[name] == ("ignored" if mark is None else said)


@pytest.mark.parametrize(("name", "spelling"), FIELDS, ids=[spelling for _, spelling in FIELDS])
@pytest.mark.parametrize("way", ["trusted", "named", "variable", "own"])
def test_setting_of_the_users_files_counts(
    name: str, spelling: str, way: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = sample(name).replace(f"{name} =", f"{spelling} =")
    path = own(folder, text) if way == "own" else write(text)
    match way:
        case "trusted":
            found = read_settings().file
            assert trust.record(path, trust.sha256(path.read_bytes()))
            assert found is None or found.path == path
        case "variable":
            monkeypatch.setenv("PLANWAVE_CONFIG", str(path))
    loaded = read_settings(path if way == "named" else None)
    assert getattr(loaded.settings, name) != getattr(Settings(), name)
    assert (loaded.ignored, loaded.notice) == ((), None)
    loaded.require_trust()


def test_only_the_settings_that_are_known_to_narrow_are_marked() -> None:
    marked = {name for name, field in Settings.model_fields.items() if narrows(field)}
    assert marked == set(STRICTER)
    for name, field in Limits.model_fields.items():
        mark = narrows(field, is_limit=True)
        assert mark is not None
        assert mark.stricter(5, 3) == (5 if name in HIGHER else 3)


@pytest.mark.parametrize("name", STRICTER)
def test_stricter_setting_of_an_untrusted_file_counts(name: str) -> None:
    write(f"{name} = {STRICTER[name]}")
    found = read_settings()
    assert getattr(found.settings, name) == json.loads(STRICTER[name])
    assert (found.ignored, found.file) == ((), None)
    found.require_trust()


@pytest.mark.parametrize("name", Limits.model_fields)
def test_limit_of_an_untrusted_file_counts_in_one_direction(name: str) -> None:
    field = Limits.model_fields[name]
    cap = next(rule.le for rule in field.metadata if getattr(rule, "le", None) is not None)
    least = next(
        (rule.ge for rule in field.metadata if getattr(rule, "ge", None) is not None), None
    )
    below = (field.default or cap) / 2 if least is None else least
    if field.annotation is int:
        below = int(below)
    counted = []
    for value in {below, cap} - {field.default}:
        write(f"[limits]\n{name} = {value}\n")
        found = read_settings()
        if getattr(found.settings.limits, name) == value:
            assert found.ignored == ()
            counted.append(value)
        else:
            assert getattr(found.settings.limits, name) == field.default
            assert found.ignored == (f"limits.{name}",)
    assert SAID[name] == ("higher" if name in HIGHER else "lower")
    stricter = {below, cap} if field.default is None else {cap if name in HIGHER else below}
    assert set(counted) == stricter - {field.default}


@pytest.mark.parametrize(
    ("held", "written", "counts"),
    [
        ('allowed_effects = ["none", "read"]', 'allowed_effects = ["read", "write"]', ["read"]),
        ("allowed_effects = []", 'allowed_effects = ["read"]', []),
        ('allowed_node_types = ["text"]', 'allowed_node_types = ["fetch"]', []),
        ('outbound_hosts = ["*.a.test"]', 'outbound_hosts = ["b.a.test"]', ["b.a.test"]),
        ('outbound_hosts = ["b.a.test"]', 'outbound_hosts = ["*.a.test"]', ["b.a.test"]),
        ('outbound_hosts = ["*.b.a.test"]', 'outbound_hosts = ["*.a.test"]', ["*.b.a.test"]),
        ('outbound_hosts = ["*.a.test"]', 'outbound_hosts = ["a.test", "ba.test"]', []),
        ('outbound_hosts = ["a.test."]', 'outbound_hosts = ["a.test"]', ["a.test", "a.test."]),
        ("require_approval = true", "require_approval = false", True),
        ("api_docs = false", "api_docs = true", False),
    ],
)
def test_untrusted_file_never_widens_what_the_user_has_narrowed(
    folder: Path, held: str, written: str, counts: Any
) -> None:
    own(folder, held)
    write(written)
    assert getattr(read_settings().settings, held.split(" =")[0]) == counts


def test_untrusted_limit_is_compared_with_the_users_own(folder: Path) -> None:
    own(folder, "[limits]\nnodes = 10\nedges = 10\n")
    write("[limits]\nnodes = 20\nedges = 5\n")
    found = read_settings()
    assert (found.settings.limits.nodes, found.settings.limits.edges) == (10, 5)
    assert found.ignored == ("limits.nodes",)


def test_environment_beats_named_beats_trusted_beats_own_beats_default(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def model(config: Path | None = None) -> tuple[str | None, int]:
        settings = read_settings(config).settings
        return settings.model, settings.limits.nodes

    assert model() == (None, 200)
    own(folder, 'model = "own"\n[limits]\nnodes = 101')
    assert model() == ("own", 101)
    path = write('model = "here"\n[limits]\nnodes = 102')
    assert model() == ("own", 101)
    trust.record(path, trust.sha256(path.read_bytes()))
    assert model() == ("here", 102)
    named = write('model = "named"\n[limits]\nnodes = 103', folder / "other.toml")
    assert model(named) == ("named", 103)
    monkeypatch.setenv("PLANWAVE_CONFIG", str(named))
    assert model() == ("named", 103)
    monkeypatch.setenv("PLANWAVE_MODEL", "environment")
    monkeypatch.setenv("PLANWAVE_LIMIT_NODES", "104")
    assert model() == ("environment", 104)


def test_entries_of_tables_are_merged_by_name_and_never_mixed(folder: Path) -> None:
    own(folder, "[providers.a]\nbase_url = 'http://a/'\napi_key_env = 'A'\n")
    text = "[providers.a]\nbase_url = 'http://evil/'\n[providers.b]\nbase_url = 'http://b/'\n"
    providers = read_settings(write(text, folder / "more.toml")).settings.providers
    assert (providers["a"].base_url, providers["a"].api_key_env) == ("http://evil/", None)
    assert providers["b"].base_url == "http://b/"


def test_changed_file_is_untrusted_again_and_trusted_again_where_it_is_as_it_was() -> None:
    path = write('model = "a"')
    trust.record(path, trust.sha256(path.read_bytes()))
    assert read_settings().settings.model == "a"
    write('model = "b"')
    assert (read_settings().settings.model, read_settings().ignored) == (None, ("model",))
    write('model = "a" ')
    assert read_settings().settings.model is None
    write('model = "a"')
    assert read_settings().settings.model == "a"


@pytest.mark.parametrize(
    "take",
    [
        lambda path, to: to.symlink_to(path),
        lambda path, to: os.link(path, to),
        lambda path, to: to.write_bytes(path.read_bytes()),
        lambda path, to: path.rename(to),
    ],
    ids=["symbolic link", "hard link", "copy", "moved"],
)
@pytest.mark.parametrize("is_inside", [True, False], ids=["folder inside", "other folder"])
def test_trust_does_not_move_with_a_file(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    take: Callable[[Path, Path], object],
    is_inside: bool,
) -> None:
    path = write('node_modules = ["mine"]').absolute()
    trust.record(path, trust.sha256(path.read_bytes()))
    assert read_settings().ignored == ()
    other = path.parent / "evil" if is_inside else folder / "evil"
    other.mkdir()
    take(path, other / "planwave.toml")
    monkeypatch.chdir(other)
    assert read_settings().ignored == ("node_modules",)


def test_trust_does_not_move_with_a_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write('node_modules = ["mine"]')
    trust.record(path, trust.sha256(path.read_bytes()))
    Path.cwd().rename(folder / "moved")
    monkeypatch.chdir(folder / "moved")
    assert read_settings().ignored == ("node_modules",)
    (folder / "clone").symlink_to(folder / "moved")
    monkeypatch.chdir(folder / "clone")
    assert read_settings().ignored == ("node_modules",)


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_file_of_any_editor_is_read_and_trusted_as_it_is(ends: str, mark: str) -> None:
    FILE.write_bytes(f'{mark}model = "a"{ends}require_approval = true{ends}'.encode())
    FILE.chmod(0o600)
    assert read_settings().ignored == ("model",)
    trust.record(FILE, trust.sha256(FILE.read_bytes()))
    found = read_settings().settings
    assert (found.model, found.require_approval) == ("a", True)
    FILE.write_bytes(f'{mark}model = "a"{ends}require_approval = true '.encode())
    assert read_settings().ignored == ("model",)


def test_settings_of_a_folder_above_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    write('model = "above"\nrequire_approval = true')
    Path("inside").mkdir()
    monkeypatch.chdir("inside")
    found = read_settings()
    assert (found.settings.model, found.settings.require_approval) == (None, False)
    assert found.ignored == ()


@pytest.mark.parametrize(
    "make",
    [
        lambda path: os.mkfifo(path),
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to("/dev/null"),
        lambda path: path.symlink_to("nowhere"),
        lambda path: path.mkdir(),
    ],
    ids=["pipe", "device", "null device", "dangling link", "directory"],
)
def test_what_is_no_file_is_not_read(make: Callable[[Path], object]) -> None:
    make(FILE)
    assert read_settings() == read_settings()
    assert read_settings().ignored == ()
    with pytest.raises(InputError, match="is no file"):
        read_settings(FILE)


def test_link_to_a_file_is_read_and_not_trusted(folder: Path) -> None:
    FILE.symlink_to(write('model = "x"', folder / "elsewhere.toml"))
    assert read_settings().ignored == ("model",)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"x" * (MAX_BYTES + 1), "has more than"),
        (b"a = " + b"[" * 100_000, "cannot be read"),
        (b"\xff", "cannot be read"),
        (b"limits = 3", "setting limits has to be a table"),
        (b"limits = 3", "planwave.toml"),
    ],
)
def test_odd_content_is_an_error_in_a_sentence(content: bytes, said: str) -> None:
    FILE.write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_settings()


@pytest.mark.parametrize("how", ["argument", "variable"])
def test_named_file_that_is_missing_is_an_error_that_says_who_named_it(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANWAVE_CONFIG", "none.toml")
    with pytest.raises(InputError, match=r"'none.toml' does not exist") as refused:
        read_settings(Path("none.toml") if how == "argument" else None)
    assert refused.value.hint == f"correct {'--config' if how == 'argument' else 'PLANWAVE_CONFIG'}"


def test_empty_variable_names_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANWAVE_CONFIG", "")
    assert read_settings().settings.model is None


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666, 0o664])
def test_own_file_that_others_may_write_is_refused(folder: Path, mode: int) -> None:
    own(folder, 'model = "x"').chmod(mode)
    with pytest.raises(InputError, match="can be written by other users") as refused:
        read_settings()
    assert refused.value.code == "settings-untrusted"


@pytest.mark.parametrize("reader", ["own", "named"])
def test_file_of_another_user_is_never_used_silently(
    folder: Path, monkeypatch: pytest.MonkeyPatch, reader: str
) -> None:
    path = own(folder, 'model = "x"') if reader == "own" else write('model = "x"')
    own_id = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own_id + 1)
    if path.stat().st_uid == 0:  # those of root count as the user's own
        os.chown(path, 12_345, -1)
    if reader == "own":
        with pytest.raises(InputError, match="belongs to another user"):
            read_settings()
    else:
        assert "belongs to another user" in read_settings(path).warnings[0]


@pytest.mark.parametrize(
    "text",
    [
        'storage_dir = "kept"',
        'storage_dir = "./storage"',
        'model_dir = "m"',
        'local_model = "./x.gguf"',
    ],
)
def test_path_in_the_users_own_file_is_the_same_in_every_folder(folder: Path, text: str) -> None:
    own(folder, text)
    with pytest.raises(InputError, match="has to be an absolute path"):
        read_settings()


@pytest.mark.parametrize("value", ["~/kept", "/kept"])
def test_absolute_path_in_the_users_own_file_counts(folder: Path, value: str) -> None:
    own(folder, f'storage_dir = "{value}"\nlocal_model = "smollm2-135m"\nmodel_dir = "{value}"')
    settings = read_settings().settings
    assert settings.storage_dir == Path(value).expanduser()
    assert "storage_dir" in settings.model_fields_set


@pytest.mark.parametrize("way", ["own", "elsewhere", "trusted", "named", "environment"])
def test_module_of_a_file_elsewhere_is_not_looked_for_in_a_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    own(folder, 'node_modules = ["pw_shadowed"]')
    Path("pw_shadowed.py").write_text("from pathlib import Path\nPath('ran').touch()\n")
    path = write('node_modules = ["pw_shadowed"]')
    config = None
    match way:
        case "trusted":
            trust.record(path, trust.sha256(path.read_bytes()))
        case "named":
            config = path
        case "elsewhere":
            config = path.rename(folder / "other.toml")
        case "environment":
            monkeypatch.setenv("PLANWAVE_NODE_MODULES", "pw_shadowed")
    settings = read_settings(config).settings
    with pytest.raises(InputError, match="pw_shadowed"):  # it has no node type
        Registry().with_modules(settings.node_modules, installed=settings.installed_modules)
    assert Path("ran").exists() is (way not in ("own", "elsewhere"))
    sys.modules.pop("pw_shadowed", None)


@pytest.mark.parametrize("way", ["own", "named", "variable", "trusted"])
def test_program_of_a_server_runs_in_the_folder_of_its_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    table = "[mcp.x]\ncommand = 'python'\nargs = ['-m', 'server']\n[mcp.y]\nurl = 'http://y/'\n"
    table += "[mcp.z]\ncommand = 'z'\ncwd = '/'\n"
    path = own(folder, table) if way == "own" else write(table, folder / "planwave.toml")
    match way:
        case "variable":
            monkeypatch.setenv("PLANWAVE_CONFIG", str(path))
        case "trusted":
            monkeypatch.chdir(folder)
            trust.record(path, trust.sha256(path.read_bytes()))
    found = read_settings(Path("..", path.name) if way == "named" else None).settings.mcp
    cwd = found["x"].cwd
    assert cwd is not None
    assert cwd.is_absolute()
    assert cwd.samefile(path.parent)
    assert (found["y"].cwd, found["z"].cwd) == (None, Path("/"))


def test_own_file_counts_as_own_in_its_own_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(own(folder, 'model = "x"').parent)
    found = read_settings()
    assert (found.settings.model, found.ignored) == ("x", ())


def test_dotenv_of_a_folder_is_not_read() -> None:
    Path(".env").write_text("PLANWAVE_MODEL=x\nOPENAI_BASE_URL=http://evil/\nPLANWAVE_CONFIG=x\n")
    settings = read_settings().settings
    assert (settings.model, settings.openai_base_url) == (None, None)


@pytest.mark.parametrize("home", ["", "~", "relative"])
def test_directory_of_the_folder_is_never_a_home(
    folder: Path, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", home)
    for name in ("~", "relative", "."):
        inside = Path(name, ".config", "planwave")
        inside.mkdir(parents=True)
        write('model = "evil"', inside / "planwave.toml")
    assert own_file() is None
    assert read_settings().settings.model is None


def test_program_is_warned_and_never_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    path = write('model = "x"')
    with pytest.warns(
        UserWarning, match=r"not trusted, and ignored in it: model; .*PLANWAVE_CONFIG"
    ):
        assert load_settings().model is None
    monkeypatch.setenv("PLANWAVE_CONFIG", str(path))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load_settings().model == "x"
