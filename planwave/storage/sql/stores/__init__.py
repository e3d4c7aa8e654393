"""The parts of the store, one module for each kind of record beside plans and executions."""
