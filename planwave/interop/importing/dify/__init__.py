"""Dify: apps as they are exported (DSL in YAML), workflows, chats and agents without a graph."""
