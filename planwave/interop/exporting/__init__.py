"""Graphs as text for other programs: Mermaid, DOT, YAML, JSON Schema, Python. Pure; ``exporter.py`` has the formats."""
