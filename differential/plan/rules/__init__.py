"""Rules that make a better plan of the one that was written, and the cases in which they must not.

The law of each: at every time of every scope the accumulated output stays. Errors may vanish, for rows that
nobody needed; they never appear.

    sets          a distinct of what is a set already goes
    filters       filters go to where rows come from
    circles       joins that go round in a circle become one join of all
    loop_results  what leaves an inner loop is consolidated before it is joined
    columns       columns that nobody reads are dropped before they are kept

Equal operators are one node by construction (`building.py`); linear ones are fused when stages are made
(`lowering.py`).
"""
