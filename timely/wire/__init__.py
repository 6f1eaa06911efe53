"""The messages between workers and clients, how they are checked, and the transports that carry them."""
