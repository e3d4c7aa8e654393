"""What decides when a call may go out: call gate, circuit breaker, concurrency limiter, Retry-After. It makes no calls itself."""
