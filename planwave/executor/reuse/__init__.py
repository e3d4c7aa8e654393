"""Results that a fork takes from its parent execution instead of computing them again."""
