"""Mermaid: flowcharts, drawn by people and by models, as plans."""
