"""From a finished plan to stages.

terms       what becomes of a collection on the way
groups      what the stage of each kind of grouping keeps
lowering    which stage computes each node
"""
