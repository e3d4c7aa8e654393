"""What commands print: plans, runs, results, flows. No calls of the service."""
