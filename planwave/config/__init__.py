"""Which files the settings come from, and what the user of this account trusts."""
