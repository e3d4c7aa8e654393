from tests.support.cli.fake_console import console_output, terminal_console, visible_lines


def shown(text: str) -> list[str]:
    console = terminal_console(width=60)
    console.markdown(text)
    return visible_lines(console)


def test_markdown_keeps_line_breaks() -> None:
    assert shown("an old pond\na frog leaps in\nsplash") == [
        "an old pond",
        "a frog leaps in",
        "splash",
    ]


def test_markdown_keeps_html_tags() -> None:
    assert shown("Use <div> here.\n\n<p>not</p>\n") == ["Use <div> here.", "<p>not</p>"]


def test_markdown_renders_tables_lists_and_links() -> None:
    text = "| a | b |\n|---|---|\n| 1 | 2 |\n\n* one ~~two~~\n\n[here](http://x.example)"
    assert shown(text) == [" a  b", " ────", " 1  2", " • one two", "here (http://x.example)"]


def test_very_long_markdown_is_not_rendered() -> None:
    console = terminal_console()
    console.markdown("**x** " * 20_000)
    assert console_output(console).startswith("**x** **x**")
