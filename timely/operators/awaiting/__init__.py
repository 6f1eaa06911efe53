"""Callbacks that await: how they run beside the steps of a worker."""
