"""A query as a plan: what is asked for, as immutable data, between collections and the stages that answer it.

nodes         the operators
functions     functions of users in them, and when two are the same
expressions   expressions as plain data
building      one dataflow's plan: equal nodes once, where each was written
rewriting     making one plan out of another
facts         what is known of nodes without running them
improving     which rules are tried, and in which order
rules         what each of them does, and when it must not
grouping      what aggregates become
stages        from a plan to stages, connectors and loops
explaining    what users are shown of all this
encoding      a plan as bytes, and back
travelling    functions of users in these bytes
installing    what a worker does with them
"""
