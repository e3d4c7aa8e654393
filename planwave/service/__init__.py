"""The use cases: plan, check, execute, watch, cancel, browse. What CLI, API and triggers call."""
