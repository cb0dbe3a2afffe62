"""Whole texts: sentences, markup, and the formats of files, around a function that translates."""
