"""The store on PostgreSQL, which several processes may write."""
