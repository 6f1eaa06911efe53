"""Vertices behind the methods of `Stream`: they take and send Python records."""
