"""Plans: creating, reading and checking them, plan JSON to stored record and back, node policies of one execution."""
