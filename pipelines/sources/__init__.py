"""Sentence pairs: from files, TensorFlow Datasets and treebanks."""
