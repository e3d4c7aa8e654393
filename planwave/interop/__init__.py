"""Flows in the protocols of other programs: adapters over the service."""
