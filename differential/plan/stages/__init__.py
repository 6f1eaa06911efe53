"""From a finished plan to stages.

terms       what becomes of a collection on the way
groups      what the stage of each kind of grouping keeps
loops       where collections enter loops, how variables come back, what leaves
lowering    which stage computes each node
"""
