"""The code of users: where a call stands, which function is meant, and whether all workers run the same."""
