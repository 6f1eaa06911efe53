"""Types and columns as other libraries declare them: Arrow, Spark, Polars, pandas, SQL.

Only Arrow is imported.
"""
