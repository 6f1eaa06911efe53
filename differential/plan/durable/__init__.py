"""How a durable cluster folds the inputs of a plan: which rules hold, and what they do to rows.

rules     which rule holds for each input, and how far answers look back
views     what the stateless operators behind an input say about a row: when it is late, and when it is let go
summing   the rows of an input, summed up
latest    the last value of each key
clamped   the rows of a checked input, and the removals that were refused
"""
