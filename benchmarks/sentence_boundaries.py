"""How well sentences are found, in text whose lines are one sentence each.

    python benchmarks/sentence_boundaries.py en:newstest2014.en.gz de:newstest2014.de.gz

Paragraphs are made of 1 to 8 lines, drawn with a seed, with a space between them; the last line of
a paragraph has no boundary. Each file is preceded by its language. Prints one JSON line: precision
and recall in percent of sentencex as it is, of documents/sentences.py, which mends what it finds,
of decoding/sentence_graph.py, which works in a graph, and of TF-Text's breaker, which does so, too.
A line that holds two sentences counts against precision, and a heading without a full stop against
recall.
"""

import argparse
import json
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from timing import run

LONGEST = 8  # lines of a paragraph

Boundaries = set[int]  # the ends of all sentences but the last


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", help="LANGUAGE:FILE, plain or .gz")
    found = {}
    for argument in parser.parse_args().files:
        language, _, path = argument.partition(":")
        found[argument] = measured(language, lines_of(path))
    print(json.dumps(found))


def lines_of(path: str) -> list[str]:
    from keras_transformer.files.reading import opened, text_lines

    with opened(path) as file:
        return [line.strip() for line in text_lines(file, path) if line.strip()]


def measured(language: str, lines: Sequence[str]) -> dict[str, dict[str, float]]:
    """{"sentencex", "ours", "graph", "tf_text"}: {"precision", "recall"} in percent."""
    paragraphs = list(paragraphs_of(lines))
    engines = {
        "sentencex": sentencex_ends,
        "ours": our_ends,
        "graph": graph_ends,
        "tf_text": tf_text_ends,
    }
    return {name: precision_and_recall(paragraphs, language, engines[name]) for name in engines}


def paragraphs_of(lines: Sequence[str], seed: int = 1) -> Iterator[Sequence[str]]:
    generator, start = random.Random(seed), 0
    while start < len(lines):
        length = generator.randint(1, LONGEST)
        yield lines[start : start + length]
        start += length


def precision_and_recall(
    paragraphs: Sequence[Sequence[str]],
    language: str,
    ends: Callable[[str, str], Boundaries],
) -> dict[str, float]:
    right = found = existing = 0
    for lines in paragraphs:
        expected, place = set(), -1
        for line in lines[:-1]:
            place += 1 + len(line)
            expected.add(place)
        given = ends(" ".join(lines), language)
        right += len(given & expected)
        found += len(given)
        existing += len(expected)
    return {
        "precision": round(100 * right / found, 2),
        "recall": round(100 * right / existing, 2),
    }


def our_ends(text: str, language: str) -> Boundaries:
    from keras_transformer.documents.sentences import split

    return {end for _, end in split(text, language)[:-1]}


def sentencex_ends(text: str, language: str) -> Boundaries:
    import sentencex

    sentences = sentencex.get_sentence_boundaries(language, text)[:-1]
    return {sentence["start_index"] + len(sentence["text"].rstrip()) for sentence in sentences}


def graph_ends(text: str, language: str) -> Boundaries:
    from keras_transformer.decoding.sentence_graph import lines_and_sentences

    ((sentences,),) = lines_and_sentences([text]).to_list()
    lengths = [len(sentence.decode("utf-8")) for sentence in sentences]
    return {len(text[:end].rstrip()) for end in list(accumulate(lengths))[:-1]}


def tf_text_ends(text: str, language: str) -> Boundaries:
    import tensorflow_text as tf_text

    breaker = tf_text.StateBasedSentenceBreaker()
    _, _, ends = breaker.break_sentences_with_offsets([text])
    content = text.encode("utf-8")
    return {len(content[:end].decode("utf-8").rstrip()) for end in ends[0].numpy()[:-1]}


if __name__ == "__main__":
    run(main)
