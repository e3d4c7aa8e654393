"""The store on SQLite: in a directory, with one writing thread and group commit, or in memory. Everything that knows SQL lives here."""
