"""The node library: one file per node type, the registry, and the ways to add types of one's own."""
