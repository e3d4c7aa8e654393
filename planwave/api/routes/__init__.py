"""HTTP and WebSocket routes: parse the request, call the service, return the response. No response models and no business rules."""
