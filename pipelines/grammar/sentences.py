"""From a derivation to its sentence pair."""

from dataclasses import dataclass

from pipelines.grammar.derivations import Question, Sentence
from pipelines.grammar.english_syntax import realise_english
from pipelines.grammar.german_syntax import Uses, realise_german


@dataclass(frozen=True, slots=True)
class Pair:
    """Both sentences and the (German lemma, construction) combinations they are made of."""

    english: str
    german: str
    uses: frozenset[tuple[str, str]]


def realise(sentence: Sentence) -> Pair:
    """Writes the derivation out in both languages."""
    uses: Uses = set()
    end = "?" if isinstance(sentence, Question) else "."
    english = _punctuate(realise_english(sentence), end)
    german = _punctuate(realise_german(sentence, uses), end)
    return Pair(english, german, frozenset(uses))


def _punctuate(words: list[str], end: str) -> str:
    """Joins words and commas; a comma that meets another or the end of the sentence is one."""
    text = " ".join(words).replace(" ,", ",").replace(",,", ",").removesuffix(",")
    return text[0].upper() + text[1:] + end
