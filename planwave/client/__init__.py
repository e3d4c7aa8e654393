"""A typed client of the service: ``AsyncClient``, and ``Client`` for code without a loop."""

from planwave.client.async_client import AsyncClient
from planwave.client.sync_client import Client

__all__ = ["AsyncClient", "Client"]
