"""Changes to graph documents: operations, merge patches, and the differences between two documents. Pure."""
