"""The audit log: who did what, in files that are only appended to, as chains of hashes.

``<storage>/audit/<time>-<instance>.jsonl`` has one JSON object a line. ``hash`` is the SHA-256 of the rest
of the line and ``previous`` the hash of the line before, so no line can be changed, removed or
inserted unnoticed. The first line of a file names the instance that writes it and the end of the file
before; so files are one chain over processes and days. Whoever can write the files can make a whole
new chain: copy the last hash elsewhere to notice that.

Processes that share a database keep the same files as rows of a table, each process its own. The first line of one names
the ends, at that time, of the newest files of all of them; so no file can be removed or cut unnoticed either.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, cast

from planwave.errors import StoreError, reason_of
from planwave.ids import new_id
from planwave.principals import current_principal
from planwave.storage.files import sync_directory

_log = logging.getLogger(__name__)

AUDIT_FOLDER: Final = "audit"
OPENED: Final = "log.opened"
CLOSED: Final = "log.closed"
MAX_FILE_BYTES: Final = 16 * 1024 * 1024
"""A file is followed by another one when it has so many bytes, or another day begins."""
_FILE_MODE: Final = 0o600
_DIRECTORY_MODE: Final = 0o700
_NAME: Final = re.compile(r"\d{8}T\d{12}Z-[0-9a-f-]{36}\.jsonl", re.ASCII)

Entry = Mapping[str, Any]


def utc_now() -> datetime:
    """Return the present UTC time."""
    return datetime.now(UTC)


class AuditUnavailable(StoreError):
    """The audit log cannot be written."""

    code = "audit-unavailable"


class LogEnd(NamedTuple):
    """The end of a file: what the first line of the next one names.

    Attributes:
        file: The name of the file.
        lines: The number of its whole lines.
        hash: The hash of the last of them.
    """

    file: str
    lines: int
    hash: str


class Finding(NamedTuple):
    """What is wrong with a log; ``line`` is 0 where it is not one line."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}" if self.line else self.message


class AuditFiles(Protocol):
    """Where the files of a log are; all methods block.

    Attributes:
        is_shared: Whether several processes write at a time, each its own file.
        location: For messages.
    """

    is_shared: bool
    location: str

    def names(self) -> list[str]:
        """Return the names of the files, oldest first."""
        ...

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        ...

    def append(self, name: str, number: int, lines: Sequence[bytes]) -> None:
        """Append lines to a file, durable on return; make it if need be.

        Args:
            name: Of the file.
            number: Of the first of the lines.
            lines: Each with its line feed.

        Raises:
            OSError, StoreError: They cannot be written.
        """
        ...

    def ends(self) -> list[LogEnd]:
        """Return the ends of the newest files that have a whole line, the newest first."""
        ...

    def prune(self, before: datetime) -> int:
        """Delete the oldest files whose last entry is older than a time, but the newest; return how many."""
        ...

    def close(self) -> None:
        """Close what is open."""
        ...


class AuditLog:
    """The audit log of one process.

    The file is made with the first entry. Concurrent entries share one write and one sync, in a thread.

    Args:
        log: The storage directory, or where else the files are.
        now: UTC time.
    """

    def __init__(self, log: Path | AuditFiles, now: Callable[[], datetime] = utc_now) -> None:
        self._files = files_of(log)
        self._now = now
        self._instance = new_id()
        self._waiting: list[tuple[dict[str, Any], asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None
        self._lock = threading.Lock()
        self._end: LogEnd | None = None
        self._file: str | None = None
        self._day = ""
        self._size = 0
        self.is_broken = False
        """Whether the last write failed."""

    async def append(self, entry: Entry) -> None:
        """Append an entry; durable when this returns.

        Raises:
            AuditUnavailable: It cannot be written.
        """
        at = self._now().isoformat(timespec="microseconds")
        done = asyncio.get_running_loop().create_future()
        self._waiting.append(({"at": at, **entry}, done))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.get_running_loop().create_task(self._write_waiting())
        await asyncio.shield(done)

    async def record(
        self, action: str, ids: Mapping[str, str], *, is_strict: bool = False, **facts: Any
    ) -> None:
        """Append what the present principal does, with ids.

        Args:
            action: What it does.
            ids: Of what, by kind.
            is_strict: Whether it must not be done without a line; else a failure is only logged.
            facts: What else the line says.

        Raises:
            AuditUnavailable: It cannot be written, and ``is_strict``.
        """
        principal = current_principal().as_json()
        try:
            await self.append({"action": action, "principal": principal, "ids": {**ids}, **facts})
        except AuditUnavailable as error:
            if is_strict:
                raise
            _log.warning("no line of the audit log for %s: %s", action, error)

    async def close(self) -> None:
        """Write what is waiting, and that the log was closed; without any entry nothing is written."""
        if self._writing is not None:
            await asyncio.wait((self._writing,))
        if self._file is not None and not self.is_broken:
            with suppress(AuditUnavailable):
                await self.append({"action": CLOSED})
        await asyncio.to_thread(self._files.close)

    def prune(self, before: datetime) -> int:
        """Delete the files whose last entry is older than a time, but the newest; return how many."""
        return self._files.prune(before)

    async def _write_waiting(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                await asyncio.to_thread(self._write, [entry for entry, _ in batch])
            except (OSError, StoreError) as error:
                self.is_broken = True
                for _, done in batch:
                    if not done.done():
                        done.set_exception(_unavailable(self._files.location, error))
                        done.exception()  # nobody may wait for it any more
            else:
                self.is_broken = False
                for _, done in batch:
                    if not done.done():
                        done.set_result(None)

    def _write(self, entries: Iterable[dict[str, Any]]) -> None:
        """Append entries and sync the file; after a failure the next write begins another file."""
        with self._lock:
            try:
                for name, lines in groupby(self._lines(entries), key=itemgetter(0)):
                    (_, number, first), *others = lines
                    self._files.append(name, number, [first, *(line for _, _, line in others)])
            except (OSError, StoreError):
                self._file = self._end = None  # half a line may be there: read the end again
                raise

    def _lines(self, entries: Iterable[dict[str, Any]]) -> Iterator[tuple[str, int, bytes]]:
        for entry in entries:
            day = entry["at"][:10]
            if self._file is None or day != self._day or self._size > MAX_FILE_BYTES:
                self._day, self._size = day, 0
                yield self._begin(entry["at"])
            yield self._next(entry)

    def _begin(self, at: str) -> tuple[str, int, bytes]:
        """Return a new file with its first line, which names the end of the file before."""
        ends = self._files.ends() if self._files.is_shared or self._end is None else []
        before = self._end or next(iter(ends), None)
        stamp = re.sub(r"[^0-9T]", "", at[:26])
        self._file = f"{stamp}Z-{new_id()}.jsonl"
        self._end = LogEnd(self._file, 0, "")
        opened: dict[str, Any] = {"at": at, "action": OPENED, "instance": self._instance}
        opened["before"] = None if before is None else before._asdict()
        if self._files.is_shared:
            opened["others"] = [e._asdict() for e in ends if before and e.file != before.file]
        return self._next(opened)

    def _next(self, entry: dict[str, Any]) -> tuple[str, int, bytes]:
        assert self._end is not None  # noqa: S101 - begun
        line, digest = encode_line(entry, self._end.hash)
        self._end = LogEnd(self._end.file, self._end.lines + 1, digest)
        self._size += len(line)
        return self._end.file, self._end.lines, line


class DirectoryFiles:
    """Satisfies ``AuditFiles`` by files in a storage directory, whose one process writes them."""

    is_shared = False

    def __init__(self, storage: Path) -> None:
        self._storage = storage
        self.location = str(storage / AUDIT_FOLDER)

    def names(self) -> list[str]:
        """Return the names of the files, oldest first."""
        return [path.name for path in audit_files(self._storage)]

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        return (self._storage / AUDIT_FOLDER / name).read_bytes()

    def ends(self) -> list[LogEnd]:
        """Return the end of the newest file that has a whole line."""
        for name in reversed(self.names()):
            if (end := end_of(name, self.read(name))) is not None:
                return [end]
        return []

    def prune(self, before: datetime) -> int:
        """Delete the files whose last entry is older than a time, but the newest; return how many."""
        files = audit_files(self._storage)[:-1]
        old = [each for each in files if each.stat().st_mtime < before.timestamp()]
        for each in old:
            each.unlink(missing_ok=True)
        return len(old)

    def close(self) -> None:
        """Do nothing: files are closed after each write."""

    def append(self, name: str, number: int, lines: Sequence[bytes]) -> None:
        """Append lines to a file and sync it; see ``AuditFiles``."""
        path, content = self._storage / AUDIT_FOLDER / name, b"".join(lines)
        is_new = not path.exists()
        if is_new:
            path.parent.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _FILE_MODE)
        try:
            written = os.write(descriptor, content)
            if written != len(content):
                raise OSError(f"only {written} of {len(content)} bytes were written")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if is_new:
            sync_directory(path.parent)


def files_of(log: Path | AuditFiles) -> AuditFiles:
    """Return the files of a log, of a storage directory or of what is none."""
    return DirectoryFiles(log) if isinstance(log, Path) else log


def encode_line(entry: Entry, previous: str) -> tuple[bytes, str]:
    """Return the line of an entry, and its hash."""
    body = json.dumps({**entry, "previous": previous}, separators=(",", ":"))
    digest = sha256(body.encode()).hexdigest()
    return f'{body[:-1]},"hash":"{digest}"}}\n'.encode(), digest


def audit_files(storage: Path) -> list[Path]:
    """Return the files of the log of a storage directory, oldest first."""
    try:
        paths = [each for each in (storage / AUDIT_FOLDER).iterdir() if _NAME.fullmatch(each.name)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(paths, key=lambda each: each.name)


def end_of(name: str, content: bytes) -> LogEnd | None:
    """Return the end of a file; None where it has no whole line."""
    lines = content.split(b"\n")[:-1]
    return LogEnd(name, len(lines), str(_parsed(lines[-1]).get("hash", ""))) if lines else None


def read_entries(log: Path | AuditFiles) -> Iterator[dict[str, Any]]:
    """Yield the entries that can be read, without the lines about the log itself, by file, the oldest first.

    Each says which ``instance`` wrote it, where several do.
    """
    files = files_of(log)
    for name in files.names():
        instance = ""
        for line in files.read(name).split(b"\n")[:-1]:
            entry = _parsed(line)
            if entry.get("action") == OPENED:
                instance = str(entry.get("instance", ""))
            elif entry.get("action") not in (None, CLOSED):
                yield {**entry, "instance": instance} if files.is_shared else entry


def verify(log: Path | AuditFiles) -> list[Finding]:
    """Return what is wrong with a log: a changed, removed, inserted or cut line, a missing file."""
    files, findings = files_of(log), list[Finding]()
    contents = {name: files.read(name) for name in files.names()}
    names, ends = [*contents], dict[str, list[str]]()
    named = {name: _named_before(contents[name]) for name in names}
    for name, next_name in zip(names, [*names[1:], None], strict=True):
        if files.is_shared:
            following = max(
                (e for each in named.values() for e in each if e.file == name), default=None
            )
        else:
            following = None if next_name is None else next(iter(named[next_name]), None)
        hashes = ends[name] = []
        findings += _check_lines(name, contents[name], hashes, following)
    for name in names[1:]:
        # Processes that share a log may begin it together.
        for before in named[name] or ([] if files.is_shared else [None]):
            is_pruned = before is not None and files.is_shared and before.file < names[0]
            if not is_pruned and (before is None or not _fits(before, ends, files.is_shared)):
                which = "no file" if before is None else f"line {before.lines} of {before.file}"
                findings.append(Finding(name, 1, f"it follows {which}, and that is not there"))
    return findings


def _check_lines(
    name: str, content: bytes, hashes: list[str], following: LogEnd | None
) -> Iterator[Finding]:
    *lines, rest = content.split(b"\n")
    previous = ""
    for number, line in enumerate(lines, 1):
        entry = _parsed(line)
        digest = entry.get("hash")
        body, _, _ = line.rpartition(b',"hash":"')
        if (
            not isinstance(digest, str)
            or sha256(body + b"}").hexdigest() != digest
            or encode_tail(digest) != line[len(body) :]
        ):
            yield Finding(name, number, "the line was changed")
        elif entry.get("previous") != previous:
            yield Finding(name, number, "the line before was changed or removed")
        elif number == 1 and entry.get("action") != OPENED:
            yield Finding(name, number, "the first line of the file is missing")
        previous = digest if isinstance(digest, str) else ""
        hashes.append(previous)
    if following is not None and following.file == name and following.lines > len(lines):
        message = f"lines are missing: the next file follows line {following.lines}"
        yield Finding(name, len(lines) + 1, message)
    elif not lines:
        yield Finding(name, 1, "the first line of the file is missing")
    if rest and following is None:
        yield Finding(name, len(lines) + 1, "the line is cut")


def encode_tail(digest: str) -> bytes:
    """Return how a line ends."""
    return f',"hash":"{digest}"}}'.encode()


def _named_before(content: bytes) -> list[LogEnd]:
    """Return the ends of other files, as the first line of a file names them."""
    first = _parsed(content.split(b"\n", 1)[0])
    others: Any = first.get("others")
    named: list[Any] = [first.get("before")]
    if isinstance(others, list):
        named += cast("list[Any]", others)
    try:
        return [LogEnd(str(e["file"]), int(e["lines"]), str(e["hash"])) for e in named]
    except (KeyError, TypeError, ValueError):
        return []


def _fits(before: LogEnd, ends: Mapping[str, list[str]], is_shared: bool) -> bool:
    """Return whether the end that a file names is there; another process may have gone on with a shared log."""
    hashes = ends.get(before.file, [])
    is_there = 0 < before.lines <= len(hashes) and hashes[before.lines - 1] == before.hash
    return is_there and (is_shared or before.lines == len(hashes))


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        entry: Any = json.loads(line)
    except ValueError:
        return {}
    return cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}


def _unavailable(location: str, error: OSError | StoreError) -> AuditUnavailable:
    return AuditUnavailable(
        f"the audit log in {location} cannot be written: {reason_of(error)}",
        hint="make room, or correct the rights of the directory; audit_log = false turns the log off",
    )
