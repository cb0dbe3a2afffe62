"""English constituency parsing (section 6.3): trees, their linearisation, and their scores.

Pure Python without TensorFlow. The model sees token sequences and knows nothing about trees.
"""
