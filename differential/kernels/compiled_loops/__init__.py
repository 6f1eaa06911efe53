"""A loop that runs compiled: iteration after iteration in one call, over the traces of its operators."""
