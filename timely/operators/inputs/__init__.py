"""Inputs: what clients send, as batches; which of it is new; what waits for which epoch."""
