"""Where the columns of a collection come from: which column `rows.x` is behind further operators."""
