"""Decides when a call may start: call gate, circuit breaker and concurrency limiter."""
