"""A query as a plan: immutable data between the collections of the user and the stages that compute them.

nodes         the operators
functions     functions of users in nodes, and when two functions are the same
expressions   expressions as plain data
building      the plan of one dataflow: each distinct node once, with the lines where it was written
rewriting     making one plan out of another
facts         what follows about a node from the plan alone
improving     which rules are tried, and in which order
rules         what each rule does, and when it must not
grouping      the nodes of aggregates
stages        from a plan to stages, connectors and loops
explaining    a plan as text for users
encoding      a plan as bytes, and back
travelling    functions of users in these bytes
installing    the builder by which a worker builds a plan that a client sent
"""
