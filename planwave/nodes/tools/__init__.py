"""What node types of tools share: their base class, URLs and bodies, and the inputs of flows."""
