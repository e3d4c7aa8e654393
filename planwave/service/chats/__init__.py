"""Chats: conversations with flows and models, above executions; docs/chat.md has the contract."""
