"""Models of the routes of the OpenAI API."""
