"""Files of other programs as planwave graphs, with a report of what became of each of their parts. Pure."""
