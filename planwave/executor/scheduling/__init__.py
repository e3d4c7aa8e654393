"""The pure scheduling kernel over integers: facts in, decisions out. It knows no node type, value, event or clock."""
