"""Check that distributions carry what they need: ``python tools/check_dist.py dist/*``.

A wheel and a source distribution hold the built web UI: its page, every file that the page loads, and the
stamp; and the list of pages that a service has at ``/llms.txt``. A source distribution holds the sources of the UI too. Neither holds npm packages. Exits 1 and
names everything that is missing.
"""

from __future__ import annotations

import re
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

BUILT = "planwave/api/web/"
SOURCES = (
    "hatch_build.py",
    "tools/web.py",
    "web/package-lock.json",
    "web/.npmrc",
    "web/index.html",
)
_LOADED = re.compile(r'(?:src|href)="\./([^"]+)"')


def problems_of(file: Path) -> Iterator[str]:
    """Yield a line for each thing that is wrong with a wheel or a source distribution."""
    contents = _wheel(file) if file.suffix == ".whl" else _source_distribution(file)
    required = [f"{BUILT}index.html", f"{BUILT}.made-from", "planwave/api/llms.txt"]
    page = contents.get(f"{BUILT}index.html", b"").decode()
    required += [f"{BUILT}{name}" for name in _LOADED.findall(page)]
    if file.suffix != ".whl":
        required += SOURCES
    if page and not any(name.endswith(".js") for name in required):
        yield f"{file.name}: the page of the web UI loads no script"
    for name in required:
        if name not in contents:
            yield f"{file.name}: {name} is missing"
    for name in contents:
        if "node_modules/" in name:
            yield f"{file.name}: {name} does not belong there"


def _wheel(file: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _source_distribution(file: Path) -> dict[str, bytes]:
    """Read all files, by their path below the one folder of the archive."""
    with tarfile.open(file) as archive:
        read = {each.name: archive.extractfile(each) for each in archive.getmembers()}
        return {
            name.partition("/")[2]: stream.read()
            for name, stream in read.items()
            if stream is not None
        }


def main(arguments: Sequence[str]) -> int:
    """Check each file; at least one has to be a wheel."""
    files = [Path(each) for each in arguments]
    problems = [line for file in files for line in problems_of(file)]
    if not any(file.suffix == ".whl" for file in files):
        problems.append("no wheel was given")
    print("\n".join(problems) or f"{len(files)} distributions carry the web UI")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
