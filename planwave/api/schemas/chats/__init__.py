"""Models of the requests and responses of chats, and examples of them."""
