"""Flowise: Agentflow V2, and of its older files sequential agents and chains of one model."""
