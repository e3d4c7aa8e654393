"""Decides when a call may start: call gate, circuit breaker, concurrency limiter, Retry-After."""
