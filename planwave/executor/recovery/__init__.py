"""Rebuild the state of an execution from its stored events; ``driver/resume`` continues from it."""
