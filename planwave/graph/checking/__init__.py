"""Check graphs against a catalogue of node types: how nodes and edges fit together. Errors of JSON and of single fields are found in graph/reading."""
