"""A synchronous English-German grammar: any number of sentence pairs, from a seed.

One derivation (`derivations`) is realised in both languages (`english_syntax`,
`german_syntax`), so every English sentence has one German translation:

    entries, nouns, verbs, words    the lexicon, one German item for an English one
    english, german                 inflection
    sample_*                        random derivations that make sense
    splits                          the splits and the combinations held out of training
    counting                        a lower bound of the number of pairs
"""

from pipelines.grammar.counting import distinct_pairs_lower_bound
from pipelines.grammar.splits import HELD_OUT, SPLITS, sentence_pairs

__all__ = ["HELD_OUT", "SPLITS", "distinct_pairs_lower_bound", "sentence_pairs"]
