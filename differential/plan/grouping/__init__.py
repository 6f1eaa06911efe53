"""What a question about groups becomes.

aggregating   several aggregates at once: who computes which, and how they become one row
choosing      one value of a group, by an order
computing     columns for what is computed
whole         the one row of a whole collection, which is there without rows, too
"""
