"""Sums without a loss: what a row adds, in limbs of 32 bits, and what all of it comes to."""
