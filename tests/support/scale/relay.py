"""A TCP relay in a process of its own: stopped, it is a network that delivers nothing and resets nothing."""

from __future__ import annotations

import asyncio
import signal
from typing import Self

from tests.support.cli.command_process import read_until
from tests.support.paths import ROOT
from tests.support.processes.forked_process import ForkedProcess

PROGRAM = """
import sys
from tests.support.scale.relay import main
main(int(sys.argv[1]))
"""


class Relay:
    """A context manager that forwards connections from a free port of loopback to another port.

    While it is cut, connections stay open at both ends, and new ones are made: nobody sees more than that no answer
    comes.

    Attributes:
        port: Where it listens.
    """

    def __init__(self, target_port: int) -> None:
        self._process = ForkedProcess("-c", PROGRAM, str(target_port), cwd=ROOT)
        self.port = int(read_until(self._process.stdout, "\n"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def cut(self) -> None:
        """Deliver nothing until ``restore``."""
        self._process.send_signal(signal.SIGSTOP)

    def restore(self) -> None:
        """Deliver what was sent meanwhile, and go on."""
        self._process.send_signal(signal.SIGCONT)


def main(target_port: int) -> None:
    """Relay until the process is killed; print the port first."""
    asyncio.run(_serve(target_port))


async def _serve(target_port: int) -> None:
    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", target_port)
        except OSError:
            writer.transport.abort()
            return
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_copy(reader, far_writer))
            tasks.create_task(_copy(far_reader, writer))

    server = await asyncio.start_server(forward, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)  # noqa: T201 - its reader waits for it
    await server.serve_forever()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(65_536):
            writer.write(piece)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()
