"""Section 5 of the paper: loss, learning rate, the training loop and its checkpoints."""
