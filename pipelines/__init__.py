"""Text to batches: sources, tokenizers, record shards and tf.data stages."""
