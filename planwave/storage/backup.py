"""Backup of a storage directory to one file, consistent at one moment, while a server writes.

The database is copied with SQLite's online backup: one read transaction, during which its owner can
write. Files are read after that. Files of ended executions never change; executions deleted meanwhile
are removed from the copy too. Documents of executions that have not ended, or that cannot be read, are
omitted and marked as not written: the first start on a restored directory writes them again from the
events.

To restore, unpack it into a new directory: ``mkdir DIR && tar -xf FILE -C DIR``.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sqlite3
import stat
import tarfile
import tempfile
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, delete, func, select, update
from sqlalchemy.exc import DBAPIError

from planwave.errors import InputError, NotFound, StoreError
from planwave.storage.event_codec import ENDED_STATUSES
from planwave.storage.files import ARTIFACT_DIR, sync_directory
from planwave.storage.sql.deletes import purge, soft_delete
from planwave.storage.sql.errors import cause_of
from planwave.storage.sql.schema import artifact_uses, executions, links, plans
from planwave.storage.sqlite import migrations
from planwave.storage.sqlite.connection import (
    DATABASE_NAME,
    engine_of,
    reading_connection,
    writing_connection,
)

_PRIVATE_MODE: Final = 0o600
"""Mode of all written files, because results may be confidential."""


@dataclass(frozen=True, slots=True)
class Backup:
    """A written backup, with the numbers of its contents.

    Attributes:
        file: The path of the file.
        size: The size of the file, bytes.
        damaged: The hashes of large results that are missing or changed in the directory, and so
            missing in the backup.
    """

    file: Path
    size: int
    executions: int
    plans: int
    flows: int
    documents: int
    artifacts: int
    damaged: tuple[str, ...] = ()


def back_up(directory: Path, file: Path) -> Backup:
    """Write the contents of a storage directory to one tar file; blocking.

    An older file of that name is replaced only after the new one was read back and verified. A name
    that ends in ``.gz`` or ``.tgz`` selects compression.

    Raises:
        NotFound: The directory has no database.
        InputError: ``file`` is a directory, its directory is missing, or it is within ``directory``.
        StoreError: ``backup-failed``, ``storage-of-another-build``, ``store-damaged``: no file was
            written.
        SchemaTooNew: A newer planwave wrote the database.
    """
    source = directory / DATABASE_NAME
    if not source.is_file():
        raise NotFound(f"nothing is stored in {str(directory)!r}, so there is nothing to back up")
    if file.is_dir() or not file.parent.is_dir():
        raise InputError(
            f"{str(file)!r} cannot be a backup: "
            + ("it is a directory" if file.is_dir() else "its directory does not exist"),
            hint="name a file, such as planwave-2026-01-31.tar",
        )
    if file.parent.resolve().is_relative_to(directory.resolve()):
        raise InputError(  # it could replace the database
            f"{str(file)!r} cannot be a backup: it is within the directory to back up",
            hint=f"name a file outside of {str(directory)!r}, best on another disk",
        )
    try:
        with tempfile.TemporaryDirectory(prefix=f".{file.name}.", dir=file.parent) as workplace:
            return _back_up(directory, file, Path(workplace))
    except (OSError, tarfile.TarError, sqlite3.Error, DBAPIError) as error:
        raise StoreError(
            f"no backup was written to {str(file)!r}: {cause_of(error)}",
            code="backup-failed",
            hint="check the free space and the permissions of its directory",
        ) from error


def _back_up(directory: Path, file: Path, workplace: Path) -> Backup:
    copy, packed = workplace / DATABASE_NAME, workplace / "packed"
    with closing(reading_connection(directory / DATABASE_NAME)) as living:
        _copy_database(living, copy)
        with _BackupArchive(packed, compress=file.suffix in (".gz", ".tgz")) as package:
            with _open_copy(copy) as connection:
                damaged = _pack_artifacts(directory, package, connection, living)
                artifacts = len(package.digests)
                _pack_documents(directory, package, connection)
                documents = len(package.digests) - artifacts
                execution_count, plan_count, flow_count = connection.execute(
                    select(
                        select(func.count()).select_from(executions).scalar_subquery(),
                        select(func.count() - func.count(plans.c.name))
                        .select_from(plans)
                        .scalar_subquery(),
                        select(func.count(plans.c.name)).scalar_subquery(),
                    )
                ).one()
            package.put_database(copy)
    package.check()
    size = packed.stat().st_size
    packed.replace(file)
    sync_directory(file.parent)
    return Backup(
        file, size, execution_count, plan_count, flow_count, documents, artifacts, damaged
    )


def _copy_database(living: sqlite3.Connection, copy: Path) -> None:
    """Copy a database and check the copy.

    Raises:
        StoreError: ``store-damaged``.
    """
    with closing(sqlite3.connect(copy)) as raw:
        copy.chmod(_PRIVATE_MODE)
        living.backup(raw)
        problems = [row[0] for row in raw.execute("PRAGMA integrity_check(3)")]
    if problems != ["ok"]:
        raise StoreError(
            f"the database is damaged: {'; '.join(problems)}",
            code="store-damaged",
            hint="keep the last good backup; `sqlite3 planwave.db .recover` may save the rest",
        )


@contextmanager
def _open_copy(copy: Path) -> Generator[Connection]:
    """Open the copy for changes, with the current schema; on exit it is one file again."""
    connection = engine_of(writing_connection(copy)).connect()
    try:
        migrations.migrate(connection)
        # One that is revoked or used since would open again; one that has ended is made by no notification again.
        connection.execute(delete(links).where(links.c.ended.is_(None)))
        _purge_all(connection)
        yield connection
        connection.exec_driver_sql("PRAGMA journal_mode=DELETE")
    finally:
        connection.close()
        connection.engine.dispose()


def _pack_artifacts(
    directory: Path, package: _BackupArchive, connection: Connection, living: sqlite3.Connection
) -> tuple[str, ...]:
    """Pack large results; return the hashes of those that are damaged and still in use."""
    used = select(artifact_uses.c.digest).distinct()
    missing: list[str] = []
    for digest in connection.execute(used).scalars().all():
        name = f"{ARTIFACT_DIR}/{digest}.json"
        if not package.put(name, directory / name, _has_digest(digest)):
            missing.append(digest)
            _remove_deleted(connection, living, digest)
    return tuple(sorted(set(missing).intersection(connection.execute(used).scalars())))


def _remove_deleted(connection: Connection, living: sqlite3.Connection, digest: str) -> None:
    """Remove from the copy the users of a large result that were deleted since the copy."""
    users = connection.execute(
        select(executions.c.key, executions.c.execution_id)
        .join(artifact_uses, artifact_uses.c.execution == executions.c.key)
        .where(artifact_uses.c.digest == digest)
    )
    for key, execution_id in users.all():
        query = "SELECT 1 FROM executions WHERE execution_id = ?"
        if living.execute(query, (execution_id,)).fetchone() is None:
            soft_delete(connection, [(key, execution_id)])
    _purge_all(connection)


def _purge_all(connection: Connection) -> None:
    while not purge(connection).is_done:
        pass


def _pack_documents(directory: Path, package: _BackupArchive, connection: Connection) -> None:
    """Pack the documents of ended executions; mark all others as not written."""
    columns = executions.c
    written = select(columns.key, columns.execution_id, columns.document_seq).where(
        columns.document_seq > 0
    )
    unwritten = update(executions).values(document_seq=0)
    connection.execute(unwritten.where(columns.status.not_in(ENDED_STATUSES)))
    for key, execution_id, seq in connection.execute(written).all():
        name = f"{execution_id}.json"
        if not package.put(name, directory / name, _is_document_of(execution_id, seq)):
            connection.execute(unwritten.where(columns.key == key))


def _has_digest(digest: str) -> Callable[[bytes], bool]:
    return lambda content: hashlib.sha256(content).hexdigest() == digest


def _is_document_of(execution_id: str, seq: int) -> Callable[[bytes], bool]:
    def is_current(content: bytes) -> bool:
        with suppress(ValueError, TypeError, LookupError, RecursionError):
            document = json.loads(content)
            return (document["execution_id"], document["last_seq"]) == (execution_id, seq)
        return False

    return is_current


class _BackupArchive:
    """A tar file with the sha256 of each of its members in ``digests``, by name."""

    def __init__(self, path: Path, *, compress: bool) -> None:
        self._path = path
        self._file = os.fdopen(
            os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, _PRIVATE_MODE), "w+b"
        )
        self._tar = tarfile.open(fileobj=self._file, mode="w:gz" if compress else "w")  # noqa: SIM115 - closed on leaving
        self.digests: dict[str, str] = {}

    def __enter__(self) -> _BackupArchive:
        return self

    def __exit__(self, *_: object) -> None:
        with self._file:
            self._tar.close()
            self._file.flush()
            os.fsync(self._file.fileno())

    def put(self, name: str, path: Path, is_sound: Callable[[bytes], bool]) -> bool:
        """Add a small file if it can be read and is sound; return whether it was added."""
        file = _read_plain_file(path)
        if file is None or not is_sound(file[0]):
            return False
        entry, content = tarfile.TarInfo(name), file[0]
        entry.size, entry.mode, entry.mtime = len(content), _PRIVATE_MODE, file[1]
        self._tar.addfile(entry, io.BytesIO(content))
        self.digests[name] = hashlib.sha256(content).hexdigest()
        return True

    def put_database(self, path: Path) -> None:
        """Add the database."""
        with path.open("rb") as file:
            self.digests[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
            file.seek(0)
            self._tar.addfile(self._tar.gettarinfo(arcname=path.name, fileobj=file), file)

    def check(self) -> None:
        """Read the file back and compare the digests.

        Raises:
            StoreError: The content differs from what was written.
        """
        digests: dict[str, str] = {}
        with tarfile.open(self._path) as tar:
            for entry in tar:
                file: Any = tar.extractfile(entry)
                if file is not None:
                    digests[entry.name] = hashlib.file_digest(file, "sha256").hexdigest()
        if digests != self.digests:
            raise StoreError(
                "the backup does not read back as it was written",
                code="backup-failed",
                hint="write it to another disk",
            )


def _read_plain_file(path: Path) -> tuple[bytes, int] | None:
    """Return content and time of a regular file; None for a link, which may point elsewhere."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            if stat.S_ISREG(status.st_mode):
                return file.read(), int(status.st_mtime)
    return None
