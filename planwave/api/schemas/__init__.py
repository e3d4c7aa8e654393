"""Pydantic models and examples that define request bodies and document responses. No routes."""
