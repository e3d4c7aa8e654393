"""Reading graph documents: JSON text or mappings to a Graph, with a finding for each error. Whether the graph makes sense is checked in graph/checking."""
