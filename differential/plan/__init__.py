"""A query as a plan: what is asked for, as immutable data, between collections and the stages that answer it.

nodes         the operators
functions     functions of users in them, and when two are the same
expressions   expressions as plain data
building      one dataflow's plan: equal nodes once, where each was written
rewriting     making one plan out of another
lowering      from a plan to stages, connectors and loops
"""
