"""Build the site of the documentation: ``docs/``, README as its first page, and the files that these link to.

Usage: ``python tools/docs_site.py [--optional]``. The pages are gathered in ``build/docs``, and Zensical writes the site
into ``build/site`` by ``mkdocs.yml``. It exits 1 at any warning, and if a page would load anything from another host;
with ``--optional`` it says in a sentence that Zensical is missing and exits 0.

Links work in the repository as they stand. On the site ``docs/`` is the root, README is ``index.md``, and every other
file that a page links to has its place below the root. ``llms.txt``, ``llms-full.txt`` and the pages as Markdown, under
``docs/``, are for language models.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath

from tools.gen_llms_txt import LIST, full_text

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "build" / "docs"
SITE = ROOT / "build" / "site"
ZENSICAL = Path(sys.executable).with_name("zensical")
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.DOTALL | re.MULTILINE)
ELSEWHERE = re.compile(r"(?:https?:)?//")
IN_STYLE = re.compile(r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')\s]+)")
LOADING_CLASSES = frozenset({"mermaid", "glightbox", "exec"})
"""For elements of these classes the scripts of the theme load libraries from elsewhere."""


def target_of(path: PurePosixPath) -> PurePosixPath:
    """Return where a file of the repository is on the site."""
    if path == PurePosixPath("README.md"):
        return PurePosixPath("index.md")
    return PurePosixPath(*path.parts[1:]) if path.parts[0] == "docs" else path


def links_of(text: str) -> Iterator[re.Match[str]]:
    """Yield the links of a page to files."""
    code = [block.span() for block in CODE.finditer(text)]
    for link in LINK.finditer(text):
        if not any(start <= link.start() < end for start, end in code):
            yield link


def linked_file(page: PurePosixPath, link: str) -> PurePosixPath:
    """Return the file that a link of a page names; that of a folder is its README.

    Raises:
        FileNotFoundError: There is none.
    """
    file = PurePosixPath(os.path.normpath(page.parent / link))
    if (ROOT / file).is_dir():
        file /= "README.md"
    if not (ROOT / file).is_file():
        raise FileNotFoundError(f"{page} links to {link}, which is no file")
    return file


def gather(pages: Path) -> None:
    """Write the pages of the site, and what they link to, into a folder."""
    shutil.rmtree(pages, ignore_errors=True)
    docs = (path.relative_to(ROOT) for path in sorted((ROOT / "docs").rglob("*.*")))
    waiting = [PurePosixPath("README.md"), *map(PurePosixPath, docs)]
    done = set[PurePosixPath]()
    while waiting:
        if (file := waiting.pop()) in done:
            continue
        done.add(file)
        target = pages / target_of(file)
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix != ".md":
            shutil.copyfile(ROOT / file, target)
            continue
        text, written, end = (ROOT / file).read_text("utf-8"), "", 0
        for link in links_of(text):
            linked = linked_file(file, link[0])
            waiting.append(linked)
            place = os.path.relpath(target_of(linked), target_of(file).parent)
            written += text[end : link.start()] + place
            end = link.end()
        target.write_text(written + text[end:], "utf-8")


class LoadReader(HTMLParser):
    """Collects what a page would load from another host."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "class":
                self.loads += LOADING_CLASSES & {*(value or "").split()}
            elif name == "style":
                self.loads += IN_STYLE.findall(value or "")
            elif tag != "a" and name in {"src", "href", "srcset", "data", "poster"}:
                self.loads += [value] if value and ELSEWHERE.match(value) else []


def loads_from_elsewhere(site: Path) -> Iterator[str]:
    """Yield what the pages and styles of a site would load from other hosts, each with its file."""
    for file in sorted(site.rglob("*")):
        loads: list[str] = []
        if file.suffix == ".html":
            reader = LoadReader()
            reader.feed(file.read_text("utf-8"))
            loads = reader.loads
        elif file.suffix == ".css":
            loads = IN_STYLE.findall(file.read_text("utf-8"))
        yield from (f"{file.relative_to(site)} loads {each}" for each in loads)


def main(arguments: Sequence[str]) -> int:
    """Build the site; return the exit code."""
    if not ZENSICAL.exists():
        print("The site is not built: install the extra docs, on Python 3.11.5 or newer.")
        return 0 if "--optional" in arguments else 1
    gather(PAGES)
    shutil.rmtree(SITE, ignore_errors=True)
    build = subprocess.run([ZENSICAL, "build", "--strict", "--clean"], cwd=ROOT, check=False)
    if build.returncode:
        return build.returncode
    shutil.copytree(ROOT / "docs", SITE / "docs")
    shutil.copyfile(ROOT / "README.md", SITE / "README.md")
    shutil.copyfile(LIST, SITE / "llms.txt")
    (SITE / "llms-full.txt").write_text(full_text(), "utf-8")
    found = [*loads_from_elsewhere(SITE)]
    print("\n".join(found) or f"the site is in {SITE.relative_to(ROOT)}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
