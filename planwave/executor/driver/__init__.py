"""The driver of an execution: messages in; state changes, events, starts, timers and replies out.

Code that runs in a node's task is in ``node_api``.
"""
