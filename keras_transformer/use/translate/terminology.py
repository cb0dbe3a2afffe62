"""Terms of a terminology: where they occur in texts, and whether forcing them spoils a sentence."""

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from keras_transformer.core.vocabulary.language_codes import CODE_PATTERN
from keras_transformer.core.vocabulary.terms import Term, has_form_of
from keras_transformer.support.errors import require
from keras_transformer.use.translate.answers import Translation

_code = re.compile(rf"(?:{CODE_PATTERN})?")
# How much log-probability per subword a sentence may lose by forced terms. Most sentences that lose
# more are spoiled: docs/diary.md.
MAX_LOSS = 0.75


def check_terminology(terminology: Mapping[str, str] | None) -> None:
    """Raises InputError for an empty phrase; None means no terminology."""
    for source, target in (terminology or {}).items():
        has_phrases = source.strip() and target.strip()
        rule = "must have a source phrase and a target phrase in each entry"
        require(has_phrases, "terminology", rule, repr({source: target}))


def terms_in(texts: Iterable[str], terminology: Mapping[str, str] | None) -> list[list[Term]]:
    """Returns the terms that occur in each text; see `term_finder`."""
    return list(map(term_finder(terminology), texts))


def term_finder(terminology: Mapping[str, str] | None) -> Callable[[str], list[Term]]:
    """Returns a function that finds the terms whose source phrases occur in a text, in order.

    They occur as whole words. A language code at the beginning of a text has no terms. Of
    overlapping phrases, the first one counts, or the longest. A large terminology takes time to
    prepare, so that one function should serve many texts.
    """
    if not terminology:
        return lambda text: []
    longest_first = sorted(map(re.escape, terminology), key=len, reverse=True)
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(longest_first)})(?!\w)")

    def find(text: str) -> list[Term]:
        matches = pattern.finditer(text, _code.match(text).end())
        return [Term(*match.span(), terminology[match[0]]) for match in matches]

    return find


def phrases_of(terms: Iterable[Term]) -> list[str]:
    """Returns the different target phrases of terms, in order."""
    return list(dict.fromkeys(term.target for term in terms))


def spoils(forced: Translation, free: Translation) -> bool:
    """Whether a translation with forced terms is much less probable than the one without them."""
    lost = free.log_prob / free.tokens - forced.log_prob / forced.tokens
    return lost > MAX_LOSS


def lacking_terms(answer: Translation, terms: Sequence[Term]) -> list[Term]:
    """Returns the terms that an answer lacks in any form."""
    return [term for term in terms if not has_form_of(answer.text, term.target)]


def with_lacking_terms(answers: Iterable[Translation], terms: Sequence[Term]) -> list[Translation]:
    """Returns the answers to a text, which name the terms that they lack in any form."""
    return [
        dataclasses.replace(answer, without_terms=tuple(phrases_of(lacking_terms(answer, terms))))
        for answer in answers
    ]
