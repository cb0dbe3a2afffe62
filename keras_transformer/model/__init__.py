"""Section 3 of the paper, in keras.ops: it runs under any Keras backend."""
