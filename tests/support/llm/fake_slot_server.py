"""A fake of the embedded server's slots: chat calls fill them, and their states are saved as files."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit


class FakeSlotServer:
    """Two slots; a state is the text that a slot has read. One word is one token.

    Attributes:
        folder: Of the saved states.
        slots: The text that each slot has read.
        busy: The slots that process a call.
        calls: ``(what, slot, body)`` of each request but the list of slots.
        stolen: The text that another call leaves in a slot after each chat call; None for no such call.
    """

    def __init__(self, folder: Path, key: str = "secret", port: int = 0) -> None:
        self.folder = folder
        self.slots = ["", ""]
        self.busy: set[int] = set()
        self.calls: list[tuple[str, int, dict[str, Any]]] = []
        self.stolen: str | None = None
        self._key = key
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None: ...

            def do_GET(self) -> None:
                fake._reply(self, 200, fake._list() if self.path == "/slots" else {})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                if self.headers["authorization"] != f"Bearer {fake._key}":
                    fake._reply(self, 401, {})
                    return
                fake._reply(self, *fake._answer(self.path, body))

        self._http = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.address = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def done(self) -> list[str]:
        """What was asked for, in order."""
        return [what for what, _, _ in self.calls]

    def _list(self) -> list[dict[str, Any]]:
        return [{"id": slot, "is_processing": slot in self.busy} for slot in range(len(self.slots))]

    def _answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        url = urlsplit(path)
        if url.path == "/v1/chat/completions":
            slot = body["id_slot"]
            self.calls.append(("chat", slot, body))
            text = "\n".join(message["content"] for message in body["messages"])
            self.slots[slot] = text if self.stolen is None else self.stolen
            return 200, {"usage": {"prompt_tokens": len(text.split())}}
        slot, [action] = int(url.path.removeprefix("/slots/")), parse_qs(url.query)["action"]
        self.calls.append((action, slot, body))
        file = self.folder / body["filename"]
        if action == "save":
            file.write_text(f"STATE {self.slots[slot]}")
            return 200, {"n_saved": len(self.slots[slot].split())}
        if not file.is_file() or not file.read_text().startswith("STATE "):
            return 400, {"error": {"message": "Unable to restore slot"}}
        self.slots[slot] = file.read_text().removeprefix("STATE ")
        return 200, {"n_restored": len(self.slots[slot].split())}

    @staticmethod
    def _reply(handler: BaseHTTPRequestHandler, status: int, body: object) -> None:
        content = json.dumps(body).encode()
        handler.send_response(status)
        handler.send_header("content-length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)
