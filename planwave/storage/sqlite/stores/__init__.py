"""The parts of the store on SQLite, one module for each port beside that of executions."""
