"""One JSON document written, where the project writes many at a time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from planwave.storage.documents import document_text, write_documents


async def write_document(directory: Path, name: str, document: Mapping[str, Any]) -> Path:
    """Write a document; give where it is, or raise why it is not there."""
    for error in (await write_documents(directory, {name: document_text(document)})).values():
        raise error
    return directory / f"{name}.json"
