"""The store on SQLite: one file, one writing thread with group commit, reader threads beside it. Everything that knows SQL lives here."""
