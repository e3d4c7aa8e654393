"""The store over SQL, for every database: tables, statements and what they mean."""
