"""Subword vocabularies at run time: text to ids and back, in Python and inside a graph."""
