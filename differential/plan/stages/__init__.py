"""From a finished plan to stages.

terms       what becomes of a collection on the way
lowering    which stage computes each node
"""
