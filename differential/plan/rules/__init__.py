"""Rules that turn a plan into a better one, and the cases in which they must not fire.

The law of each rule: at every time of every scope the accumulated output stays the same. Errors may vanish,
for rows that nobody needed; a rule never adds one.

    sets          remove a distinct of a collection that is a set already
    filters       move filters towards the inputs
    circles       replace joins that go round in a circle by one join of all
    loop_results  consolidate what leaves an inner loop before it is joined
    columns       drop columns that nobody reads before they are stored

Equal operators are one node by construction (`building.py`); linear ones are fused when stages are made
(`lowering.py`).
"""
