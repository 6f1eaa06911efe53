"""The nodes of aggregates and other questions about groups.

aggregating   several aggregates at once: which operator computes each, and how they become one row
choosing      one value of a group, by an order
collecting    the values of a group as a list
computing     columns for computed arguments
dividing      groups that are divided among units
whole         the one row of a whole collection, also while it has no rows
"""
