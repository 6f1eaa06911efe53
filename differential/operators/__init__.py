"""The operators of a collection, one file each. None knows `collection.py`, which hands over to them."""
