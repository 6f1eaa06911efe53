"""From a finished plan to stages.

terms          a collection as a sum of streams, each with a chain of linear operators
groups         the stage of each kind of grouping: what it stores, and how it makes answers
accumulation   the components of sums
loops          collections that enter loops, variables that come back, results that leave
patterns       joins of many, half joins, and joins that are spread over units
timed          operators that look at epochs, and the stages behind inputs
meeting        the columns by which rows must meet before an output stores them
failing        the ways of failures to outputs
lowering       the stage of each node
"""
