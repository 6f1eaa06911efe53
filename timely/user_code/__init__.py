"""The code of users: the line of a call, digests of functions, stale modules, shortened tracebacks."""
