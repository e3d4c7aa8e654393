"""Sandcastle: workflows in YAML, whose steps are prompts that depend on each other."""
