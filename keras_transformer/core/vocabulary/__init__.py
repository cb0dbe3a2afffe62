"""Subword vocabularies at run time: text to ids and back."""
