"""Texts in, answers out, around an engine that searches. Does not import TensorFlow."""
