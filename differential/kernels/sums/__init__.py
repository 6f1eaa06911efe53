"""Exact sums: the amounts that a row adds, in limbs of 32 bits, and the answers that their totals give."""
