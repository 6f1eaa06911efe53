"""The answers of a worker about inputs and about outputs; `worker/server.py` chooses between them."""
