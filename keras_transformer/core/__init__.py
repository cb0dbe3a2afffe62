"""The paper: model, vocabulary, training and search. Imports nothing of `use` and `kit`."""
