"""The options of every command: those before it, after it, and left out."""

from __future__ import annotations

from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from planwave.cli.app import app as planwave
from planwave.cli.context import CommandContext
from planwave.cli.options import shared_options
from tests.support.cli.fake_factories import fake_factories


def seen_by(command: Any, *words: str, before: dict[str, Any] | None = None) -> CommandContext:
    """Return the context that a command gets, with the options that came before it."""
    seen: list[CommandContext] = []
    app = typer.Typer()

    @app.callback()
    def root(ctx: typer.Context) -> None:
        ctx.obj = CommandContext(fake_factories(), **(before or {}))

    app.command("do")(command(seen))
    done = CliRunner().invoke(app, ["do", *words])
    assert done.exit_code == 0, done.output
    return seen[0]


def plain(seen: list[CommandContext]) -> Any:
    @shared_options(with_model=True, untrusted="refuse")
    def do(ctx: CommandContext, times: int = 1) -> None:
        seen.append(ctx)
        assert times == 2

    return do


def test_options_after_a_command_override_those_before_it_or_add_to_them() -> None:
    words = ["--times", "2", "--json", "--storage", "b", "--import", "c", "--model", "m"]
    before = {"storage": "a", "config": "k", "node_modules": ["b"]}
    ctx = seen_by(plain, *words, before=before)
    assert (ctx.json, ctx.storage, ctx.config) == (True, "b", "k")
    assert (ctx.node_modules, ctx.provider, ctx.model) == (["b", "c"], None, "m")
    assert (ctx.untrusted, ctx.subcommand) == ("refuse", None)
    assert ctx.command.endswith("do")


def test_options_before_a_command_stay_where_it_names_none() -> None:
    ctx = seen_by(plain, "--times", "2", before={"json": True, "provider": "openai"})
    assert (ctx.json, ctx.provider, ctx.storage) == (True, "openai", None)


def test_an_empty_provider_or_model_is_none() -> None:
    ctx = seen_by(plain, "--times", "2", "--provider", "", "--model", "", before={"model": "m"})
    assert (ctx.provider, ctx.model) == (None, "m")


def commands(group: Any, words: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return the words of every command, of groups too."""
    found: list[tuple[str, ...]] = []
    for name, command in sorted(group.commands.items()):
        found.append((*words, name))
        if hasattr(command, "commands"):
            found += commands(command, (*words, name))
    return found


@pytest.mark.parametrize("words", commands(typer.main.get_command(planwave)), ids=" ".join)
def test_every_command_has_the_options_of_every_command(words: tuple[str, ...]) -> None:
    """But for two that have no result in JSON, and for groups that do nothing by themselves."""
    if words in (("config",), ("flow",), ("model",), ("store",)):
        return
    command: Any = typer.main.get_command(planwave)
    for word in words:
        command = command.commands[word]
    names = {each.name for each in command.params}
    missing = {"json", "storage", "config", "node_modules"} - names
    assert missing == ({"json"} if words in (("chat",), ("mcp",)) else set())


def number_options() -> list[tuple[tuple[str, ...], str]]:
    """Return every option that takes a number, with the words of its command."""
    found: list[tuple[tuple[str, ...], str]] = []
    for words in commands(typer.main.get_command(planwave)):
        command: Any = typer.main.get_command(planwave)
        for word in words:
            command = command.commands[word]
        found += [
            (words, each.opts[0])
            for each in command.params
            if each.type_descriptor.annotation in (int, float)
        ]
    return found


@pytest.mark.parametrize("value", ["-1", "nan", "many"])
@pytest.mark.parametrize(("words", "option"), number_options(), ids=str)
def test_a_wrong_number_is_reported_in_one_way(
    words: tuple[str, ...], option: str, value: str
) -> None:
    done = CliRunner().invoke(planwave, [*words, option, value], obj=fake_factories())
    assert done.exit_code == 2
    assert f"invalid value for '{option}'" in done.output.replace("\n", " "), done.output
