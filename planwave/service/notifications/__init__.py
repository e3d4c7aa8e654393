"""Outgoing notifications: what happens to executions is sent, signed, to URLs that ask for it."""
