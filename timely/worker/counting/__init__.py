"""What a worker counts, as plain values for clients: of itself, of its process, of each dataflow."""
