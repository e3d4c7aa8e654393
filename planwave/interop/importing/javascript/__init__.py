"""JavaScript expressions of other programs as expressions of planwave. Pure; nothing is evaluated."""
