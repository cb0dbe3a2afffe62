"""What computes a model: TensorFlow, the same compiled by XLA, or CTranslate2."""
