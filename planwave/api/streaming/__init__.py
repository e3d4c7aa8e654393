"""Server-sent events and the WebSocket of an execution; the routes that start them are in ``routes``."""
