import json

from typer.testing import CliRunner, Result

from planwave.cli.app import app
from tests.support.cli.fake_factories import fake_factories


def nodes(*args: str) -> Result:
    return CliRunner().invoke(app, ["nodes", *args], obj=fake_factories())


def test_nodes_lists_types_with_origin_effect_and_purpose() -> None:
    lines = nodes().stdout.splitlines()
    assert lines[0] == "planwave"
    assert "  void           none    Discard the input; no result." in lines
    listed = {each["node_type"]: each for each in json.loads(nodes("--json").stdout)["node_types"]}
    file = listed["void"]["origin"].pop("file")
    assert listed["void"] == {
        "node_type": "void",
        "purpose": "Discard the input; no result.",
        "effect": "none",
        "origin": {"kind": "library", "name": "planwave"},
    }
    assert file.endswith("void.py")


def test_one_type_has_ports_data_and_an_example() -> None:
    shown = nodes("merge").stdout
    assert shown.startswith("merge  Bring branches together")
    headings = [
        line for line in shown.splitlines() if line and not line.startswith((" ", "{", "}"))
    ]
    assert headings[1:] == [
        "From      planwave",
        "Effect    none",
        "Inputs",
        "Outputs",
        "Data (an edge may replace a value)",
        "Example",
    ]
    example = json.loads(shown[shown.index("\n{") :])
    described = json.loads(nodes("merge", "--json").stdout)
    assert described["example"] == example
    assert described["origin"]["kind"] == "library"
    assert {"inputs", "outputs", "schema", "purpose", "effect"} <= described.keys()


def test_field_notes_say_what_may_be_written() -> None:
    lines = [line.split() for line in nodes("agent").stdout.splitlines()]
    assert ["input", "any", "multiple"] in lines
    assert ["model", "model", "link"] in lines
    note = ["userPrompt", "text", "or", "null", "may", "hold", "{{", "…", "}};", "The", "prompt,"]
    assert note in [line[: len(note)] for line in lines]


def test_unknown_type_says_how_a_type_is_loaded() -> None:
    done = nodes("agnt")
    assert done.exit_code == 2
    assert done.stderr == (
        "✗ there is no node type 'agnt'\n"
        "  → did you mean 'agent'? a type of your own is known when its module is imported; the "
        "command line and the service import the node_modules of planwave.toml (--import MODULE)\n"
    )
    assert "planwave nodes lists all types; a type" in nodes("zzzzzz").stderr
