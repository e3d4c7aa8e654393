"""The one HTTP client for every URL that a user or a model can influence.

It connects to public addresses alone, and to the private services that the operator names. Model
calls go to addresses that the operator set up and have their own transport in ``providers``; what
``Retry-After`` says is read here for both.
"""
