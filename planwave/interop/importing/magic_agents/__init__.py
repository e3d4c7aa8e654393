"""magic_agents: flows of steps that are joined by named handles, in two versions of the format."""
