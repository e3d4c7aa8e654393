"""Events as ``chat.completion.chunk`` objects of the OpenAI API."""
