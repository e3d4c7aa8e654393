"""The JSON that planwave gives: one ``TypedDict`` for each shape.

The service returns these dicts, the HTTP API documents them (``success(PlanResponse, …)`` of a route),
and the methods of the client name them. A docstring below a field is its description in the OpenAPI
document. Fields that are not required are left out where they do not apply. Only errors and
principals are below this package, which needs no framework.
"""
