"""Routes of the OpenAI API: published flows as models."""
