"""The chat protocol of Covalt: its looser decisions about calls of tools.

planwave's own API takes exact decisions, one for each call; what this protocol guesses is guessed here alone.
"""
