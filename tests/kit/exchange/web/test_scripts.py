"""The page's modules in node: they search, split and format text as Python does."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from keras_transformer.kit.documents.tree.case import case_of, in_sentence_case
from keras_transformer.kit.documents.tree.sentences import cut, split

EXAMPLE = Path(__file__).resolve().parents[4] / "docs" / "examples" / "onnx_translate.py"
# A model whose hypotheses are each in one of 97 states, which determine the next token.
STATES, V = 97, 12
SEARCH = """
import { search } from "./beam_search.js";
const next = (token, state) => (31 * state + 7 * token + 5) % table.length;
const model = {
  encode: (sources) => sources.map((ids) => ids.reduce((state, id) => next(id, state), 0)),
  chosen: (memory, places) => places.map((place) => memory[place]),
  step(tokens, parents, memory, cache) {
    const K = tokens.length / memory.length;
    const states = tokens.map((token, n) =>
      next(token, cache ? cache[parents[n]] : memory[Math.floor(n / K)]));
    return { logProbs: Float32Array.from(states.flatMap((state) => table[state])), V: 12,
      cache: states };
  },
};
const maxLength = (ids) => ids.length > 1 ? ids.length + 9 : 0;
const requests = sources.map((ids, n) => ({ ids, prefix: prefixes[n] ?? [] }));
const options = { beams, alpha, guaranteed, maxLength, earlyStopping: early };
const found = await search(model, requests, options);
answer(found.map((row) => row.map(({ ids, score }) => [score, ids])));
"""


class Lattice:
    """The same model for the documentation's example, whose search is tested against ours."""

    def __init__(self, table):
        self.table = table
        self.card = {
            "description": {"model": {"positions": "none"}},
            "decoding": {"max_source_length": 99, "extra_length": 9},
        }
        self.empty = None

    def next(self, token, state):
        return (31 * state + 7 * token + 5) % STATES

    def encode(self, sources):
        states = []
        for ids in sources:
            state = 0
            for id_ in ids:
                state = self.next(id_, state)
            states.append(state)
        return {"states": np.array(states)}

    def step(self, token, parent, memory, cache):
        K = len(token) // len(memory["states"])
        if cache is None:
            cache, parent = memory["states"], [n // K for n in range(len(token))]
        states = [self.next(t, cache[p]) for t, p in zip(token, parent, strict=True)]
        return self.table[states], states


def load_example():
    spec = importlib.util.spec_from_file_location("onnx_translate", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def table():
    """Log-probabilities, float32 [STATES, V]."""
    logits = np.random.default_rng(7).normal(scale=2, size=(STATES, V))
    logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return logits.astype(np.float32)


SOURCES = [[4, 5, 2], [2], [6, 7, 8, 9, 2], [4, 2], [11, 10, 9, 2]]


@pytest.mark.parametrize(("beams", "alpha"), [(1, 0.6), (3, 0.6), (4, 0.0), (4, 1.4)])
def test_beam_search_finds_what_the_example_finds(run_script, table, beams, alpha):
    expected = load_example().search(Lattice(table), SOURCES, beams, alpha)
    values = {"table": table.tolist(), "sources": SOURCES, "prefixes": []}
    results = run_script(SEARCH, **values, beams=beams, alpha=alpha, guaranteed=beams, early=False)
    assert [[ids for _, ids in row] for row in results] == [[i for _, i in row] for row in expected]
    for row, other in zip(results, expected, strict=True):
        scores = [[score for score, _ in each] for each in (row, other)]
        np.testing.assert_allclose(*scores, rtol=1e-5)


def test_prefixes_and_the_best_alone(run_script, table):
    values = {"table": table.tolist(), "sources": SOURCES, "beams": 4, "alpha": 0.6, "early": False}
    every = run_script(SEARCH, **values, prefixes=[], guaranteed=4)
    best = run_script(SEARCH, **values, prefixes=[], guaranteed=1)
    assert [row[0] for row in best] == [row[0] for row in every]
    prefixes = [every[0][0][1][:2], [], [7, 7, 7]]
    results = run_script(SEARCH, **values, prefixes=prefixes, guaranteed=4)
    assert results[0][0] == every[0][0], "the best begins with it"
    assert results[1] == [[0, []]]
    assert all(ids[:3] == [7, 7, 7] for _, ids in results[2])


def test_early_stopping(run_script):
    """EOS always has probability 0.4, token 4 has 0.59: a longer translation scores higher."""
    table = np.full((STATES, V), np.log(0.6 / (V - 1)))
    table[:, 2], table[:, 4] = np.log(0.4), np.log(0.59)
    values = {"table": table.tolist(), "sources": [[4, 2]], "prefixes": []}
    values |= {"beams": 2, "alpha": 2.0, "guaranteed": 1}
    lengths = [len(run_script(SEARCH, **values, early=early)[0][0][1]) for early in (True, False)]
    assert lengths[0] < lengths[1]


TEXTS = [
    ('It rains. We stay!  Do you? She said: "No." He left.', "en"),
    ("Dr. Smith met M. Blair at 3.30 p.m. in the U.S. capital. They spoke.", "en"),
    ("Am 3. Mai kam er. Nr. 5 blieb. Das kostet z. B. 5 Euro.", "de"),
    ("They sit in a garden. 2 girls play with 3 dogs. Nr. 5 is red.", "en"),
    ("A man walks A dog runs home. They like the Two towers and plan A for this.", "en"),
    ("  no stop ", "en"),
    ("これは文です。次の文です。", "ja"),
    ("", "en"),
]


def test_sentences_are_those_of_documents(run_script):
    body = """import { split } from "./sentences.js";
answer(texts.map(([text, language]) => split(text, language).map((span) => text.slice(...span))));
"""
    results = run_script(body, texts=TEXTS)
    expected = [[text[slice(*span)] for span in split(text, lang)] for text, lang in TEXTS]
    assert results == expected


@pytest.mark.parametrize(
    "text",
    ["one two; three four, five six seven", "one two, three four", "a b c d", "abcdefgh", "a"],
)
def test_sentences_that_are_too_long_are_cut(run_script, text):
    body = """import { cut } from "./sentences.js";
answer(cut(text, [0, text.length], 3, (part) => part.split(" ").length + Number(part.length > 5)));
"""

    def count(spans):
        parts = [text[slice(*span)] for span in spans]
        return [len(part.split(" ")) + (len(part) > 5) for part in parts]

    expected = [list(span) for span in cut(text, (0, len(text)), 3, count)]
    assert run_script(body, text=text) == expected


CASES = [
    *("THE DOG SLEEPS.", "NATO", "The Old Dog Sleeps All Day", "Dr. John Smith, Berlin"),
    *("The McDonald Family Goes Home Today", "The Old Dog Sleeps All Day.", "a dog", "123", ""),
    *("ČESKÝ PES", "Don't Stop Believing In The Dog", "漢字 かな", "«THE DOG» İZMİR"),
]


def test_capitals_and_titles_are_known(run_script):
    body = """import { caseOf, inSentenceCase } from "./case.js";
answer(texts.map((text) => [caseOf(text, "en"), caseOf(text, "de"), inSentenceCase(text)]));
"""
    results = run_script(body, texts=CASES[:-1])
    assert results == [
        [case_of(text, "en").value, case_of(text, "de").value, in_sentence_case(text)]
        for text in CASES[:-1]
    ]


DOCUMENT = """import { TextTranslator } from "./text_translator.js";
const vocabulary = { encode: (text) => text.split(/ /).map(() => 5) };
const card = { max_source_length: 6, beam_size: 2, ...facts };
const translator = new TextTranslator(null, vocabulary, vocabulary, card);
translator.translate = (texts, code, pause, guaranteed) => {
  asked.push([texts, code, guaranteed]);
  return texts.map((text) => [{ text: answers[text] ?? text.replace("dog", "Hund\\n") }]);
};
const asked = [];
const found = await translator.answer(request, () => {}).catch((error) => error.message);
answer([found, asked]);
"""


@pytest.fixture
def document(run_script):
    def translated(text, answers=None, facts=None, **fields):
        request = {"document": text, "format": "text", **fields}
        return run_script(DOCUMENT, request=request, answers=answers or {}, facts=facts or {})

    return translated


def test_documents_keep_what_is_no_sentence(document):
    found, asked = document(" a dog.  b 😀 dog!\n\n x ")
    assert found["translation"] == " a Hund .  b 😀 Hund !\n\n x "
    assert asked == [[["x", "a dog.", "b 😀 dog!"], "", 1]]
    assert [each["source"] for each in found["sentences"]] == ["a dog.", "b 😀 dog!", "x"]
    for each in found["sentences"]:
        assert found["translation"][each["start"] : each["end"]] == each["translation"]


def test_sentences_in_documents(document):
    found, asked = document("THE DOG SLEEPS.", {"The dog sleeps.": "der Hund"})
    assert (found["translation"], asked[0][0]) == ("DER HUND", ["The dog sleeps."])
    found, _ = document("a b c d e f g h", {"a b c d": "A", "e f g h": "  "})
    assert found["translation"] == "A e f g h", "too long for the model, which had nothing to say"
    wrapped = "The photographer understands neighbourhoods and\nis warm.\n\n- one\n- two"
    found, _ = document(wrapped, format="wrapped")
    one = "The photographer understands neighbourhoods and is warm."
    assert found["translation"] == f"{one}\n\n- one\n- two"


EDGES = [
    ("- a dog 😀🎉", "- ", "a dog"),
    ("[x] 2) the dog, https://a.org/b?c", "[x] 2) ", "the dog,"),
    ("https://a.org/b.", "https://a.org/b.", ""),
    ("12:30 – 14:00", "12:30 – 14:00", ""),
    ("see https://a.org now", "", "see https://a.org now"),
    ("a) b", "a) ", "b"),
]


@pytest.mark.parametrize(("text", "before", "language"), EDGES)
def test_what_is_no_language_at_the_edges_stays(run_script, document, text, before, language):
    body = """import { withoutEdges } from "./placeholders.js";\nanswer(withoutEdges(text));"""
    results = run_script(body, text=text)
    assert results[:2] == [before, language] and "".join(results) == text
    if language:
        assert document(text, {language: "X"})[0]["translation"] == text.replace(language, "X")


def test_languages_of_a_model(document):
    facts = {"task_options": {"target_languages": ["de", "cs"]}}
    assert document("a", facts=facts, to="cs")[1] == [[["a"], ">>cs<< ", 1]]
    message, asked = document("a", facts=facts, to="fr")
    assert "de, cs" in message and message.endswith("Received: fr") and asked == []
    assert document("a", to="de")[0].endswith("Received: de")
