"""A data directory to batches."""
