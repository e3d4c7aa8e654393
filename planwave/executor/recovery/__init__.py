"""Stored events turned back into the state of an execution. What goes on from there is in ``driver/resume``."""
