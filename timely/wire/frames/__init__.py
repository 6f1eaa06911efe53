"""The frames of requests, replies and tables."""
