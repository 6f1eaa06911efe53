"""Relations become collections: subqueries become joins, and joins get an order."""
