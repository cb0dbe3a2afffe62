"""Beam search, and its binding to the model."""
