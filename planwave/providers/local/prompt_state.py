"""Saved prompt states: what the embedded model computed for a prompt's fixed beginning, as files.

A model reads the planner's instructions and example in seconds, and loads what it computed for them in
milliseconds. A state belongs to one model file, runtime version, context and beginning, whose hash is
the first half of the file's name. The second half is the hash of the content, because the runtime
detects a damaged file only in part. The files hold no words of users: the beginning is read on its own.

All this saves time only: whatever fails here, the call that follows reads its whole prompt.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planwave.graph.plan import canonical_json
from planwave.providers.local.download import sha256_of

if TYPE_CHECKING:
    import httpx2

    from planwave.providers.local.process import ModelServer
    from planwave.providers.protocols import ModelRequest

FOLDER = "prompt-state"
MAX_FILES = 10
_ACTION_S = 5.0
"""Seconds for a load or save, which take milliseconds unless the slot got a call meanwhile."""


class PromptStateFiles:
    """The files of saved states in one folder.

    Args:
        folder: Readable by its owner only: the runtime trusts what it loads.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open(self) -> bool:
        """Create the folder if it is missing; return whether it can be used."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.folder.chmod(0o700)
        except OSError:
            return False
        return True

    def find(self, key: str) -> str | None:
        """Return the name of the file with this key; deletes files with damaged content."""
        with suppress(OSError):
            for path in self.folder.glob(f"{key}-*.bin"):
                if path.name == _file_name(key, path):
                    path.touch()  # the files used last are kept
                    return path.name
                path.unlink(missing_ok=True)
        return None

    def install(self, draft: str, key: str) -> None:
        """Rename a new file to its final name, and delete the oldest files beyond the limit."""
        path = self.folder / draft
        path.replace(self.folder / _file_name(key, path))
        files = sorted(self.folder.iterdir(), key=lambda each: each.stat().st_mtime_ns)
        for file in files[:-MAX_FILES]:
            file.unlink(missing_ok=True)

    def delete(self, name: str) -> None:
        """Delete a file, if it exists."""
        with suppress(OSError):
            (self.folder / name).unlink(missing_ok=True)


async def load_prompt_state(
    server: ModelServer,
    files: PromptStateFiles,
    request: ModelRequest,
    settings: Mapping[str, Any],
    read_s: float,
) -> None:
    """Load the state of a request's fixed beginning into a free slot of the server.

    Without a file, the server reads the beginning, which the call needs anyway, and the state is saved.

    Args:
        server: A running server whose ``slot_save_path`` is the folder of the files.
        files: The saved states.
        request: The call that follows; the server finds the slot that knows most of its prompt.
        settings: What the state depends on besides the beginning: the model file, the context.
        read_s: The longest time for reading the beginning.
    """
    # Lazy: test_importing_providers_loads_no_sdk
    import httpx2

    key = _key_of(settings, request)
    name = await asyncio.to_thread(files.find, key)
    client = httpx2.AsyncClient(
        base_url=server.address,
        headers={"Authorization": f"Bearer {server.key}"},
        timeout=_ACTION_S,
        transport=httpx2.AsyncHTTPTransport(verify=False, trust_env=False),
        trust_env=False,
    )
    try:
        async with client as http:
            slot = await _free_slot(http)
            if slot is None:
                return
            if name is not None:
                if await _act(http, slot, "restore", name) is not None:
                    return
                await asyncio.to_thread(files.delete, name)
            draft = f"{secrets.token_hex(8)}.draft"
            try:
                if await _read_and_save(http, slot, request, draft, read_s):
                    await asyncio.to_thread(files.install, draft, key)
            finally:
                files.delete(draft)
    except (httpx2.HTTPError, OSError, ValueError, LookupError, TypeError):
        return


async def _free_slot(http: httpx2.AsyncClient) -> int | None:
    slots = (await http.get("/slots")).raise_for_status().json()
    return next((int(slot["id"]) for slot in slots if not slot["is_processing"]), None)


async def _read_and_save(
    http: httpx2.AsyncClient, slot: int, request: ModelRequest, draft: str, read_s: float
) -> bool:
    """Read the beginning into a slot and save its state; False if another call used the slot then."""
    turns = [{"role": "user", "content": request.fixed_beginning}]
    if request.system:
        turns.insert(0, {"role": "system", "content": request.system})
    body = {"model": request.model, "messages": turns, "max_tokens": 0, "id_slot": slot}
    reply = await http.post("/v1/chat/completions", json=body, timeout=read_s)
    tokens = reply.raise_for_status().json()["usage"]["prompt_tokens"]
    saved = await _act(http, slot, "save", draft)
    return saved is not None and saved["n_saved"] == tokens


async def _act(
    http: httpx2.AsyncClient, slot: int, action: str, name: str
) -> dict[str, Any] | None:
    """Save or restore a slot; None if the server cannot."""
    reply = await http.post(f"/slots/{slot}", params={"action": action}, json={"filename": name})
    return reply.json() if reply.is_success else None


def _key_of(settings: Mapping[str, Any], request: ModelRequest) -> str:
    parts = {**settings, "system": request.system, "beginning": request.fixed_beginning}
    return sha256(canonical_json(parts).encode()).hexdigest()[:32]


def _file_name(key: str, path: Path) -> str:
    return f"{key}-{sha256_of(path)[:32]}.bin"
