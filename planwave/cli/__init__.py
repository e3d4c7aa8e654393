"""The command line: parse, call the service, show. Nothing here decides anything about a run.

Command modules import heavy rooms inside their commands, so that ``planwave --help`` stays fast.
"""
