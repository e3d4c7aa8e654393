"""The pages behind links: made here as HTML, without scripts, for people who have no access to anything else."""
