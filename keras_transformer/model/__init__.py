"""Section 3 of the paper, in keras.ops and keras.layers: it runs under any Keras backend."""
