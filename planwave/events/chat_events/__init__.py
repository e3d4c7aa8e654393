"""Events of an execution as the events and blocks of a reply in a chat; docs/chat.md has their form."""
