"""Translates whole texts: splits sentences, and handles markup and file formats."""
