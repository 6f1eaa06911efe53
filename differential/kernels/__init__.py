"""Compiled kernels of the operators: sorting, merging, matching and aggregating rows of 64-bit words.

Free functions over int64 arrays, all through `progress.compiled.kernel.kernel`. They import `progress` and
numpy, nothing else, and never call back into Python. Every one has a slow twin in `tests/reference/words.py`.

A table of n updates with `kw` key words and `vw` value words is one array, column after column:

    words   int64[kw + vw + 2, n], C-contiguous: key words, value words, time word, diff

*Sorted*: lexicographic by (key, value, time). *Consolidated*: equal rows summed, no diff is zero.

Read `memory.py` (how a kernel sees all runs of a trace at once), `sort.py`, `merge.py`, `match.py`, then
`closure.py`, `history.py` and the reduce kernels. A kernel trusts its arguments: the machines in
`differential/operators` assert shapes once per activation, nothing is asserted once per row.
"""
