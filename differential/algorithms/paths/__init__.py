"""How far is it from one node to another, and is there a way at all?"""
