"""Graphs: reading, checking and measuring them. Pure: no clock, no I/O, no node types by name."""
