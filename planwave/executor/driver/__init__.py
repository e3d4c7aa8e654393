"""What happens in a turn of an execution's mailbox: state changes, events, starts, timers and replies. What runs in a node's task is in ``node_api``."""
