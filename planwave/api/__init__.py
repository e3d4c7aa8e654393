"""The service over HTTP, server-sent events and WebSocket: parse, call the service, render."""
