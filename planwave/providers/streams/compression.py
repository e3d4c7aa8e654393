"""Undo the compression of a response, within a bound.

planwave asks for none (``accept-encoding: identity``); some proxies compress all the same. The stream
is undone as it arrives, so that all checks of the transport see text.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Protocol

from planwave.providers.streams.errors import StreamGarbage

_STEP_BYTES = 64 * 1024
"""Bytes that are undone at once: a small piece may stand for a thousand times as many."""
_MAX_BYTES = 64 * 1024 * 1024
_ZLIB_BITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


class Decoder(Protocol):
    """Undoes one encoding; yields pieces of bounded size."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what these bytes stand for."""
        ...


class _Zlib:
    """gzip and deflate; a stream may have several members, as servers that flush each chunk send it."""

    def __init__(self, bits: int) -> None:
        self._bits = bits
        self._inner = zlib.decompressobj(bits)
        self._is_new = True

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data:
            try:
                yield self._inner.decompress(data, _STEP_BYTES)
            except zlib.error:
                if not (self._is_new and self._bits == _ZLIB_BITS["deflate"]):
                    raise
                self._restart(-self._bits)  # many servers send deflate without its header
                continue
            self._is_new = False
            data = self._inner.unconsumed_tail or self._inner.unused_data
            if self._inner.eof:
                self._restart(self._bits)

    def _restart(self, bits: int) -> None:
        self._bits = bits
        self._inner = zlib.decompressobj(bits)
        self._is_new = True


class _Optional:
    """An encoding of a library that may be installed; it is undone in small pieces, one after another."""

    def __init__(self, decompress: Callable[[bytes], bytes]) -> None:
        self._decompress = decompress

    def feed(self, data: bytes) -> Iterator[bytes]:
        for start in range(0, len(data), 512):
            yield self._decompress(data[start : start + 512])


def _brotli() -> Decoder | None:
    for name in ("brotli", "brotlicffi"):
        try:
            library: Any = import_module(name)
        except ImportError:
            continue
        inner = library.Decompressor()
        return _Optional(getattr(inner, "process", None) or inner.decompress)
    return None


def _zstd() -> Decoder | None:
    try:
        library: Any = import_module("zstandard")
    except ImportError:
        return None
    return _Optional(library.ZstdDecompressor().decompressobj(read_across_frames=True).decompress)


class Decompressor:
    """Undoes the encodings of a response.

    Args:
        encodings: The value of ``content-encoding``.

    Raises:
        StreamGarbage: An encoding is not known here.
    """

    def __init__(self, encodings: str) -> None:
        names = [name.strip().lower() for name in encodings.split(",")]
        self._decoders = [
            _decoder(name) for name in reversed(names) if name not in ("", "identity")
        ]
        self._bytes_left = _MAX_BYTES

    def __bool__(self) -> bool:
        return bool(self._decoders)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what these bytes stand for.

        Raises:
            StreamGarbage: They are not of this encoding, or stand for too many bytes.
        """
        try:
            for piece in self._undo(data, 0):
                self._bytes_left -= len(piece)
                if self._bytes_left < 0:
                    raise StreamGarbage(f"compressed data of more than {_MAX_BYTES} bytes")
                if piece:
                    yield piece
        except StreamGarbage:
            raise
        except Exception as error:
            raise StreamGarbage("the compressed data are damaged") from error

    def _undo(self, data: bytes, level: int) -> Iterator[bytes]:
        if level == len(self._decoders):
            yield data
            return
        for piece in self._decoders[level].feed(data):
            yield from self._undo(piece, level + 1)


def _decoder(name: str) -> Decoder:
    if name in _ZLIB_BITS:
        return _Zlib(_ZLIB_BITS[name])
    decoder = {"br": _brotli, "zstd": _zstd}.get(name, lambda: None)()
    if decoder is None:
        raise StreamGarbage(f"a response with the encoding {name[:20]!r}, which nobody asked for")
    return decoder
