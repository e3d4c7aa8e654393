"""Questions about what is stored: lists and look-ups, differences between executions, why a node ran or did not. Nothing is changed here."""
