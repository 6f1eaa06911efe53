"""What a worker sends to others, and when it tells them of its progress."""
