"""Plain ASGI middleware, in front of all routes. Nothing here knows a route's parameters."""
