"""Carriers: what decides which process drives an execution, and when."""
