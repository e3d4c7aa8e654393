"""One module for each group of commands: options in, calls of the backend, output through ``views``."""
