"""What holds an epoch on a worker, and what the worker is at: read only when somebody asks."""
