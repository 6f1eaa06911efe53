"""What makes a worker durable: what it may show, and how it begins with what the logs hold."""
