"""The service over HTTP, server-sent events and WebSocket: parsing and rendering, no use-case rules."""
