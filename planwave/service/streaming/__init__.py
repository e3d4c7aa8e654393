"""Live views of executions: one projection each, subscriptions from any event on, bounded subscriber queues. Wire formats live in `api/streaming`."""
