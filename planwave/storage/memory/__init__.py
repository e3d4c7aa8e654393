"""The store in memory, for tests and for runs that need no durability: the same ports as the store on SQLite."""
