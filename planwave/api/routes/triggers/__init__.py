"""Routes of triggers: `bindings` for the people who run flows, `hooks` for the programs that send requests."""
