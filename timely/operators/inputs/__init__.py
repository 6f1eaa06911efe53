"""Inputs: rows of clients become batches, repeated deliveries are found, and rows wait for their epochs."""
