"""What a node type is written with: base classes, the function decorator, data fields and the wires into them. The types that come with planwave are in ``library``."""
