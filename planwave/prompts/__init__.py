"""The words planwave says to models: Jinja2 templates and the typed functions that render them."""
