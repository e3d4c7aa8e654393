"""Executions: creating, queueing, running, commands, recovery, forks and retries. What clients see of them live is in `service/streaming`."""
