"""The operators of a collection, one file each. None knows `collections/`, which hands over to them."""
