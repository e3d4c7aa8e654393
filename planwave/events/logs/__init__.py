"""Two log projections of events: sentences for people, and typed entries."""
