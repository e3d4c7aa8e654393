"""Goal to plan: the question, the strict reading of the answer, and the repair loop."""
