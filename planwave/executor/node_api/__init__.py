"""What runs in a node's task: look-ups, links, templates, results, nested runs and once values. It never changes an execution's state, it posts messages to the driver."""
