"""n8n workflows: steps that pass lists of items on, with JavaScript in their parameters."""
