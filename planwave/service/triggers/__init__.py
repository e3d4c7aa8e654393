"""Triggers of flows as they are stored, their deliveries, and the executions that they start. What listens is in `planwave/triggers`."""
