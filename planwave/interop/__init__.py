"""Other programs use planwave with their own protocols: adapters over the service."""
