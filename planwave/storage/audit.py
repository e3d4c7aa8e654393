"""The audit log: who did what, in files that are only appended to, as chains of hashes.

``<storage>/audit/<time>-<instance>.jsonl`` has one JSON object a line. ``hash`` is the SHA-256 of the rest
of the line and ``previous`` the hash of the line before, so no line can be changed, removed or
inserted unnoticed. The first line of a file names the instance that writes it and the end of the file
before; so files are one chain over processes and days. Whoever can write the files can make a whole
new chain: copy the last hash elsewhere to notice that.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

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


class AuditLog:
    """The audit log of one process.

    The file is made with the first entry. Concurrent entries share one write and one sync, in a thread.

    Args:
        storage: The storage directory.
        now: UTC time.
    """

    def __init__(self, storage: Path, now: Callable[[], datetime] = utc_now) -> None:
        self._directory = storage / AUDIT_FOLDER
        self._now = now
        self._instance = new_id()
        self._waiting: list[tuple[dict[str, Any], asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None
        self._lock = threading.Lock()
        self._end: LogEnd | None = None
        self._path: Path | None = None
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
        if self._path is not None and not self.is_broken:
            with suppress(AuditUnavailable):
                await self.append({"action": CLOSED})

    def prune(self, before: datetime) -> int:
        """Delete the files whose last entry is older than a time, but the newest; return how many."""
        files = audit_files(self._directory.parent)[:-1]
        old = [each for each in files if each.stat().st_mtime < before.timestamp()]
        for each in old:
            each.unlink(missing_ok=True)
        return len(old)

    async def _write_waiting(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                await asyncio.to_thread(self._write, [entry for entry, _ in batch])
            except OSError as error:
                self.is_broken = True
                for _, done in batch:
                    if not done.done():
                        done.set_exception(_unavailable(self._directory, error))
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
                for path, lines in groupby(self._lines(entries), key=itemgetter(0)):
                    self._append(path, b"".join(line for _, line in lines))
            except OSError:
                self._path = self._end = None  # half a line may be there: read the end again
                raise

    def _lines(self, entries: Iterable[dict[str, Any]]) -> Iterator[tuple[Path, bytes]]:
        for entry in entries:
            day = entry["at"][:10]
            if self._path is None or day != self._day or self._size > MAX_FILE_BYTES:
                self._day, self._size = day, 0
                yield self._begin(entry["at"])
            yield self._next(entry)

    def _begin(self, at: str) -> tuple[Path, bytes]:
        """Return a new file with its first line, which names the end of the file before."""
        before = self._end or last_end(self._directory.parent)
        stamp = re.sub(r"[^0-9T]", "", at[:26])
        self._path = self._directory / f"{stamp}Z-{new_id()}.jsonl"
        self._end = LogEnd(self._path.name, 0, "")
        opened = {"at": at, "action": OPENED, "instance": self._instance}
        return self._next({**opened, "before": None if before is None else before._asdict()})

    def _next(self, entry: dict[str, Any]) -> tuple[Path, bytes]:
        assert self._end is not None and self._path is not None  # noqa: S101, PT018 - begun
        line, digest = encode_line(entry, self._end.hash)
        self._end = LogEnd(self._end.file, self._end.lines + 1, digest)
        self._size += len(line)
        return self._path, line

    def _append(self, path: Path, lines: bytes) -> None:
        is_new = not path.exists()
        if is_new:
            path.parent.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _FILE_MODE)
        try:
            written = os.write(descriptor, lines)
            if written != len(lines):
                raise OSError(f"only {written} of {len(lines)} bytes were written")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if is_new:
            sync_directory(path.parent)


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


def last_end(storage: Path) -> LogEnd | None:
    """Return the end of the newest file; None without one, or where it has no whole line."""
    for path in reversed(audit_files(storage)):
        lines = path.read_bytes().split(b"\n")[:-1]
        if lines:
            return LogEnd(path.name, len(lines), str(_parsed(lines[-1]).get("hash", "")))
    return None


def read_entries(storage: Path) -> Iterator[dict[str, Any]]:
    """Yield the entries that can be read, oldest first, without the lines about the log itself."""
    for path in audit_files(storage):
        for line in path.read_bytes().split(b"\n")[:-1]:
            entry = _parsed(line)
            if entry.get("action") not in (None, OPENED, CLOSED):
                yield entry


def verify(storage: Path) -> list[Finding]:
    """Return what is wrong with a log: a changed, removed, inserted or cut line, a missing file."""
    findings: list[Finding] = []
    ends: dict[str, list[str]] = {}
    files = audit_files(storage)
    named = [_named_before(path) for path in files[1:]]
    for path, following in zip(files, [*named, None], strict=True):
        hashes: list[str] = []
        ends[path.name] = hashes
        findings += _check_lines(path, hashes, following)
    for path in files[1:]:
        before = _named_before(path)
        if before is None or not _fits(before, ends):
            which = "no file" if before is None else f"line {before.lines} of {before.file}"
            findings.append(Finding(path.name, 1, f"it follows {which}, and that is not there"))
    return findings


def _check_lines(path: Path, hashes: list[str], following: LogEnd | None) -> Iterator[Finding]:
    *lines, rest = path.read_bytes().split(b"\n")
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
            yield Finding(path.name, number, "the line was changed")
        elif entry.get("previous") != previous:
            yield Finding(path.name, number, "the line before was changed or removed")
        elif number == 1 and entry.get("action") != OPENED:
            yield Finding(path.name, number, "the first line of the file is missing")
        previous = digest if isinstance(digest, str) else ""
        hashes.append(previous)
    if following is not None and following.file == path.name and following.lines > len(lines):
        message = f"lines are missing: the next file follows line {following.lines}"
        yield Finding(path.name, len(lines) + 1, message)
    elif not lines:
        yield Finding(path.name, 1, "the first line of the file is missing")
    if rest and following is None:
        yield Finding(path.name, len(lines) + 1, "the line is cut")


def encode_tail(digest: str) -> bytes:
    """Return how a line ends."""
    return f',"hash":"{digest}"}}'.encode()


def _named_before(path: Path) -> LogEnd | None:
    """Return the end of the file before, as the first line of a file names it."""
    before: Any = _parsed(path.read_bytes().split(b"\n", 1)[0]).get("before")
    try:
        return LogEnd(str(before["file"]), int(before["lines"]), str(before["hash"]))
    except (KeyError, TypeError, ValueError):
        return None


def _fits(before: LogEnd, ends: Mapping[str, list[str]]) -> bool:
    hashes = ends.get(before.file, [])
    return 0 < before.lines == len(hashes) and hashes[-1] == before.hash


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        entry: Any = json.loads(line)
    except ValueError:
        return {}
    return cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}


def _unavailable(directory: Path, error: OSError) -> AuditUnavailable:
    return AuditUnavailable(
        f"the audit log in {directory} cannot be written: {reason_of(error)}",
        hint="make room, or correct the rights of the directory; audit_log = false turns the log off",
    )
