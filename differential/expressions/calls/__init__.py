"""Functions over columns under the names that PySpark has for them."""
