"""What the paper counts and shows of its model."""
