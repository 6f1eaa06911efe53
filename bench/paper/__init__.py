"""The measurements of the differential dataflow paper's section 5, on public data."""
