"""Graph documents: model, reader, checker, measures. Pure: no clock, no I/O, no node type by name."""
