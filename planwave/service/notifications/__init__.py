"""Outgoing notifications: events of executions are sent, signed, to configured URLs."""
