"""Rules of Datalog as collections; `datalog.py` describes them, the other files make joins of them."""
