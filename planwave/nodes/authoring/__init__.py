"""Tools to write node types: base classes, the function decorator, data fields, wires into them.

The types that come with planwave are in ``library``.
"""
