"""Collections that dataflows of one cluster read from one another, on each worker by itself.

exports    a collection that is kept by key, for other dataflows to read from its present state on
imports    a copy of such a collection, kept up to date
"""
