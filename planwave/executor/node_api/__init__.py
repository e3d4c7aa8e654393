"""Services inside a node's task: look-ups, links, templates, results, nested runs, once values.

This code never changes the state of an execution; it posts messages to the driver.
"""
