"""Checking graphs against a catalogue of node types: what is wrong with how nodes and edges fit together. What is wrong with JSON or single fields is found in graph/reading."""
