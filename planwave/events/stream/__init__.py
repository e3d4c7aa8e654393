"""What people see of an execution while it runs: its events as parts of one answer.

``parts`` is the one place that says which text this is; ``planwave.chunks`` and the OpenAI API encode its
parts. A chat shows every node, in blocks (``events/chat_events``), with the same ``visibility`` of results.
"""
