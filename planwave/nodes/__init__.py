"""Node types: the registry and the modules that node types share. ``executor`` runs nodes."""
