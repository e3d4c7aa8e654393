"""Langflow: flows of components, each with a form and a program of its own."""
