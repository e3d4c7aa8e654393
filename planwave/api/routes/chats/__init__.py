"""Routes of chats: the chats themselves, their messages, and the streams of both."""
