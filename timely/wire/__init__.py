"""What workers and clients send one another, how it is checked, and by what it travels."""
