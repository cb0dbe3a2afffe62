"""Section 3 of the paper, in keras.ops and keras.layers; runs on any Keras backend."""
