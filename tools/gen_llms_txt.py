"""Write ``planwave/api/llms.txt``, the list of the pages for language models (https://llmstxt.org).

The pages are those of the navigation in ``mkdocs.yml``, each with its first sentence. ``planwave serve`` has the file at
``/llms.txt``. ``tools/docs_site.py`` puts it on the site, with ``llms-full.txt``, which has the text of all pages.

Usage: ``python tools/gen_llms_txt.py [--check]``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "planwave" / "api" / "llms.txt"
NAVIGATION = re.compile(r"^  - (?P<section>[^:\n]+):$|^ +- [^:\n]+: (?P<page>\S+\.md)$", re.M)
HEAD = """\
# planwave

> From a goal to a watched, controllable, reproducible result: a language model plans a graph of steps, planwave checks
> it, runs it, streams it and stores it. A command, an HTTP service with a web UI, and a Python library.

The pages are in the source distribution, and on the site of the documentation. A running service describes its routes
at /openapi.json and /docs.
"""


def pages() -> Iterator[tuple[str, Path]]:
    """Yield the section and the file of each page, in the order of the navigation."""
    section = "Overview"
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    for entry in NAVIGATION.finditer(navigation):
        if entry["section"]:
            section = entry["section"]
        elif entry["page"] == "index.md":
            yield section, ROOT / "README.md"
        else:
            yield section, ROOT / "docs" / entry["page"]


def summary(text: str) -> tuple[str, str]:
    """Return the title of a page and its first sentence, without markup."""
    title, _, rest = text.removeprefix("# ").partition("\n")
    paragraph = " ".join(rest.strip().partition("\n\n")[0].split())
    plain = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", paragraph).replace("**", "")
    return title, re.split(r"(?<=\.)\s", plain, maxsplit=1)[0].rstrip(".:") + "."


def page_list() -> str:
    """Return the list of the pages."""
    text, last = HEAD, ""
    for section, page in pages():
        title, sentence = summary(page.read_text("utf-8"))
        text += f"\n## {section}\n\n" if section != last else ""
        text += f"- [{title}]({page.relative_to(ROOT).as_posix()}): {sentence}\n"
        last = section
    return text


def full_text() -> str:
    """Return the text of all pages."""
    return "\n".join(page.read_text("utf-8") for _, page in pages())


def main(arguments: Sequence[str]) -> int:
    """Write the list, or with ``--check`` report whether it is current."""
    if LIST.exists() and LIST.read_text("utf-8") == page_list():
        return 0
    name = LIST.relative_to(ROOT)
    if "--check" in arguments:
        print(f"{name} is not current; run: make generate")
        return 1
    LIST.write_text(page_list(), "utf-8")
    print(f"{name} updated")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
