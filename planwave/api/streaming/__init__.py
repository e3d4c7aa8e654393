"""What is sent while it happens: server-sent events and WebSocket messages. The routes that start a stream are in ``routes``."""
