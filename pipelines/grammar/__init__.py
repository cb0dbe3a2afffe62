"""A synchronous English-German grammar: any number of sentence pairs, from a seed.

One tree is written in both languages, so every English sentence has exactly one German translation:

    lexicon, words/*.csv    the words, one German item for each English one
    tree                    the structure of a sentence pair
    english                 the English sentence of a tree
    german_syntax, german   the German one: word order, inflection
    phrases, clauses, sentences    random trees that make sense
    splits                  the splits, and the combinations held out of training

The sentences do not change: the quickstart's recipe was tuned on them, and its scores are
published. A test holds them to a digest.
"""

from pipelines.grammar.splits import SPLITS, sentence_pairs

__all__ = ["SPLITS", "sentence_pairs"]
