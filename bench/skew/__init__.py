"""What do the placements of skewed joins cost: messages, moves, imbalance, storage, work?

Counts only: placements and planner are run over real data, row by row in columns, without a dataflow. Read
`streams.py` (the rows), `queries.py` (what is joined), `counting.py` (the simulation), `figures.py` (what is
shown).
"""
