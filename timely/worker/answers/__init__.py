"""What a worker answers its clients, by what it is about; `worker/server.py` says who is asked."""
