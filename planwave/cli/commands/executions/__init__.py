"""Commands on stored executions: list, show, watch, control, answer, fork, explain, compare."""
