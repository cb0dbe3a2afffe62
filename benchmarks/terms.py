"""Measures how a model uses the terms of a terminology.

    python benchmarks/terms.py --model_dir=runs/mine/model \
        --train_source=train.en --train_target=train.de \
        --test_source=test.en --test_target=test.de

Each sentence has one term, drawn from those that IBM model 1, learned from the training text, finds
in its pair. Prints one JSON line. For the "reference" terms, which are in the reference, and for
"wrong" ones, another sentence's translation in their place:

- `sentences`: number of sentences, for which everything below is measured.
- `free` and `with_terms`: of the translations without and with terms, `exact`, the share with the
  term as it is; `stem`, with all of its words, possibly in another form; and `bleu`. The references
  for wrong terms have these in place of the right ones.
- `only_learned`: the same of a model that was trained with terms if a term that the translation
  lacks is not forced. Exports to other formats do not force terms.
- `without_terms`: share of the sentences that were given back without their term.
- `always_forced`: the same as `with_terms`, of a model that was not trained with terms, if no
  sentence is given back.
- `by_loss`: for such a model, of the sentences with a loss of log-probability per subword in each
  range, how many there are, and how much chrF changes by the forced term.

`speed` has the seconds for all test sentences, the median of the rounds: without terms, and with
the most frequent terms in one list (also `only_learned`), which a sentence uses
`terms_per_sentence` times on average.
"""

import argparse
import bisect
import contextlib
import json
import math
import random
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from timing import check_positive, log, run

LISTED_TERMS = 200  # for the speed
LOSSES = (0.05, 0.25, 0.5, 0.75, 1.0, 1.5)  # the ranges of `by_loss`


class Case(NamedTuple):
    """A sentence with a term."""

    source: str
    reference: str
    phrase: str
    target: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model_dir", required=True)
    for name in ("train_source", "train_target", "test_source", "test_target"):
        parser.add_argument(f"--{name}", required=True, help="one sentence per line")
    parser.add_argument("--sentences", type=int, default=1000, help="number of test sentences")
    parser.add_argument("--alpha", type=float)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--examples", type=int, default=5, help="translations to show on stderr")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    check_positive(arguments, "sentences", "rounds")

    import keras_transformer as kt
    from pipelines.prepare.term_annotation import TermLexicon

    train = pairs_of(arguments.train_source, arguments.train_target)
    test = pairs_of(arguments.test_source, arguments.test_target)[: arguments.sentences]
    lexicon = TermLexicon(train)
    cases = cases_of(test, lexicon, random.Random(arguments.seed))
    translator = kt.load(arguments.model_dir, alpha=arguments.alpha)
    wrong_cases = wrong(cases, random.Random(arguments.seed))
    found = {"knows_terms": translator.knows_terms}
    for name, some in (("reference", cases), ("wrong", wrong_cases)):
        found[name] = scores(translator, some, arguments.examples)
        log(f"{name}: {found[name]}")
    found["speed"] = speed(translator, test, lexicon, arguments.rounds)
    print(json.dumps(found))


def lines_of(path: str) -> list[str]:
    from keras_transformer.support.files.reading import opened, text_lines

    with opened(path) as file:
        return [line.strip() for line in text_lines(file, path)]


def pairs_of(source: str, target: str) -> list[tuple[str, str]]:
    return list(zip(lines_of(source), lines_of(target), strict=True))


def cases_of(pairs: Sequence[tuple[str, str]], lexicon, generator: random.Random) -> list[Case]:
    """Draws a term for each pair that has one."""
    cases = []
    for source, target in pairs:
        terms = lexicon.terms((source, target))
        if terms:
            term = generator.choice(terms)
            cases.append(Case(source, target, source[term.start : term.end], term.target))
    return cases


def wrong(cases: Sequence[Case], generator: random.Random) -> list[Case]:
    """Replaces terms by those of other sentences with as many words and the same capitals."""
    by_kind = defaultdict(list)
    for case in cases:
        by_kind[kind_of(case.target)].append(case.target)
    wrong_cases = []
    for case in cases:
        others = [
            target
            for target in by_kind[kind_of(case.target)]
            if not has_stems(case.reference, target) and not has_stems(target, case.target)
        ]
        if others:
            target = generator.choice(others)
            reference = case.reference.replace(case.target, target)
            wrong_cases.append(case._replace(reference=reference, target=target))
    return wrong_cases


def kind_of(phrase: str) -> tuple[bool, ...]:
    return tuple(word[0].isupper() for word in phrase.split())


def has_stems(text: str, phrase: str) -> bool:
    """Whether each word of a phrase, or another form of it, is in a text."""
    from pipelines.prepare.term_annotation import have_one_stem, words_of

    words = words_of(text)
    return all(
        any(word == other or have_one_stem(word, other) for other in words)
        for word in words_of(phrase)
    )


def scores(translator, cases: Sequence[Case], examples: int) -> dict[str, Any]:
    from keras_transformer.use.translate import terminology

    free = [best for best, *_ in translator.translate([case.source for case in cases])]
    found = {"sentences": len(cases), "free": score(cases, free)}
    if translator.knows_terms:
        answers = [best for best, *_ in translated_with_terms(translator, cases)]
        show(cases[:examples], free, answers)
        with not_forcing(translator.engine):
            learned = [best for best, *_ in translated_with_terms(translator, cases)]
        return found | {"with_terms": score(cases, answers), "only_learned": score(cases, learned)}
    longest_loss = terminology.MAX_LOSS
    terminology.MAX_LOSS = math.inf  # nothing is given back, so that all losses are seen
    forced = [best for best, *_ in translated_with_terms(translator, cases)]
    terminology.MAX_LOSS = longest_loss
    show(cases[:examples], free, forced)
    given_back = [terminology.spoils(b, a) for a, b in zip(free, forced, strict=True)]
    answers = [a if is_free else b for a, b, is_free in zip(free, forced, given_back, strict=True)]
    return found | {
        "with_terms": score(cases, answers),
        "without_terms": share(given_back),
        "always_forced": score(cases, forced),
        "by_loss": changes_by_loss(cases, free, forced),
    }


def show(cases: Sequence[Case], free: Sequence, with_terms: Sequence) -> None:
    for case, a, b in zip(cases, free, with_terms, strict=False):
        log(f"{case.source}\n  {a.text}\n  {case.phrase} = {case.target}\n  {b.text}")


@contextlib.contextmanager
def not_forcing(engine) -> Iterator[None]:
    """Keeps an engine from forcing terms, as those of CTranslate2, ONNX and the browser do not."""
    functions = engine.functions
    engine.functions = [name for name in functions if name != "constrain_ids"]
    yield
    engine.functions = functions


def changes_by_loss(cases: Sequence[Case], free: Sequence, forced: Sequence) -> list[dict]:
    from sacrebleu import sentence_chrf

    changes = defaultdict(list)
    for case, a, b in zip(cases, free, forced, strict=True):
        loss = a.log_prob / a.tokens - b.log_prob / b.tokens
        chrf = [sentence_chrf(best.text, [case.reference]).score for best in (a, b)]
        changes[bisect.bisect(LOSSES, loss)].append(chrf[1] - chrf[0])
    return [
        {
            "loss": LOSSES[number - 1] if number > 0 else None,  # at least
            "sentences": len(values),
            "chrf_change": round(statistics.mean(values), 1),
        }
        for number, values in sorted(changes.items())
    ]


def score(cases: Sequence[Case], answers: Sequence) -> dict[str, float]:
    from sacrebleu import corpus_bleu

    texts = [best.text for best in answers]
    pairs = list(zip(texts, cases, strict=True))
    return {
        "exact": share([case.target in text for text, case in pairs]),
        "stem": share([has_stems(text, case.target) for text, case in pairs]),
        "bleu": round(corpus_bleu(texts, [[case.reference for case in cases]]).score, 2),
    }


def share(values: Sequence[bool]) -> float:
    return round(sum(values) / len(values), 4)


def translated_with_terms(translator, cases: Sequence[Case]) -> list:
    """Translates each sentence with its own term; sentences that share no phrase go together."""
    groups: list[tuple[dict[str, str], list[int]]] = []
    for index, case in enumerate(cases):
        for terms, members in groups:
            is_free = not any(phrase in case.source for phrase in terms)
            if is_free and not any(case.phrase in cases[other].source for other in members):
                break
        else:
            terms, members = {}, []
            groups.append((terms, members))
        terms[case.phrase] = case.target
        members.append(index)
    answers = {}
    for terms, members in groups:
        rows = translator.translate([cases[index].source for index in members], terminology=terms)
        answers |= dict(zip(members, rows, strict=True))
    return [answers[index] for index in range(len(cases))]


def speed(translator, test, lexicon, rounds: int) -> dict[str, float]:
    """Times all test sentences without terms and with a list, in turn."""
    from keras_transformer.use.translate.terminology import terms_in

    counts = Counter()
    for source, target in test:
        for term in lexicon.terms((source, target)):
            counts[source[term.start : term.end], term.target] += 1
    listed = dict(reversed([pair for pair, _ in counts.most_common(LISTED_TERMS)]))
    sources = [source for source, _ in test]
    ways = [("free", None, contextlib.nullcontext), ("with_terms", listed, contextlib.nullcontext)]
    if translator.knows_terms:
        ways.append(("only_learned", listed, lambda: not_forcing(translator.engine)))
    seconds = defaultdict(list)
    for number in range(rounds + 1):  # the first, which warms up, does not count
        for name, terms, context in ways:
            start = time.perf_counter()
            with context():
                translator.translate(sources, terminology=terms)
            if number > 0:
                seconds[name].append(time.perf_counter() - start)
    per_sentence = sum(map(len, terms_in(sources, listed))) / len(sources)
    found = {name: round(statistics.median(values), 2) for name, values in seconds.items()}
    return {**found, "terms_per_sentence": round(per_sentence, 2)}


if __name__ == "__main__":
    run(main)
