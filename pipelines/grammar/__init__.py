"""A synchronous English-German grammar: any number of sentence pairs, from a seed.

One tree is written in both languages, so every English sentence has exactly one German translation:

    lexicon.csv, table, entries, lexicon    the words, one German item for each English one
    tree                                    the structure of a sentence pair
    english, german, german_syntax          inflection and word order
    sample_*                                random trees that make sense
    splits                                  the splits, and the combinations held out of training
    counting                                a lower bound on the number of pairs
"""

from pipelines.grammar.counting import distinct_pairs_lower_bound
from pipelines.grammar.splits import HELD_OUT, SPLITS, sentence_pairs

__all__ = ["HELD_OUT", "SPLITS", "distinct_pairs_lower_bound", "sentence_pairs"]
