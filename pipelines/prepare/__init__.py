"""Pairs to a data directory: selection, augmentation, vocabulary and records."""
