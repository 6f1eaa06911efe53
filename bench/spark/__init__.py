"""Benchmarks that run Spark beside the workers."""
