"""Compares translations by a model's ONNX graphs with keras_transformer's: ids, scores and time.

    python benchmarks/onnx_engines.py --model_dir=runs/mine/model --source=test.en \
        [--reference=test.de] [--weights float32 int8] [--engines onnxruntime openvino] \
        [--beams 1 4] [--sentences 1000]

The search in docs/examples/onnx_translate.py runs the graphs. Both sides translate the same ids, in
batches of 64 sentences of similar length, one batch at a time. Greedy search is compared with both
of the library's greedy searches, with and without scores. Prints a JSON line for each combination
of engine, weights and number of beams:

    equal        sentences whose best translation has the same ids
    equal_all    sentences whose translations all have the same ids, in the same order
    largest_gap  between scores of best translations: log-probability / length penalty
    largest_gap_of_unequal   the same, for sentences whose best translations differ
    bleu, library_bleu           if there is a reference
    seconds, library_seconds     after a first batch, without loading
"""

import argparse
import importlib.util
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from timing import log

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

BATCH = 64
ALPHA = 0.6


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model_dir", type=Path, required=True)
    parser.add_argument("--source", required=True, help="one sentence per line, plain or .gz")
    parser.add_argument("--reference", help="reference translations of --source")
    parser.add_argument("--weights", nargs="+", default=["float32"])
    parser.add_argument("--engines", nargs="+", default=["onnxruntime", "openvino"])
    parser.add_argument("--beams", nargs="+", type=int, default=[1, 4])
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()

    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(options.threads)
    from keras_transformer.loading import load
    from keras_transformer.restoring import decoding_config, restore
    from keras_transformer.translate.texts import encoded, with_eos

    example = load_example()
    trained = restore(options.model_dir)
    config = decoding_config(trained)
    limit = config.limits(trained.model.config).source
    texts = read_lines(options.source)[: options.sentences]
    sources = with_eos(encoded(trained.vocabularies.source, texts), limit).ids
    order = sorted(range(len(sources)), key=lambda place: len(sources[place]))
    sources = [sources[place] for place in order]
    quality = None
    if options.reference is not None:
        references = read_lines(options.reference)
        references = [references[place] for place in order]
        quality = quality_by(trained.vocabularies.target, references)
    batches = [sources[start : start + BATCH] for start in range(0, len(sources), BATCH)]
    for beams in options.beams:
        translator = load(options.model_dir, beam_size=beams, alpha=ALPHA)
        library, library_seconds = search_with_library(translator.engine, batches, beams)
        for weights in options.weights:
            with tempfile.TemporaryDirectory() as parent:
                folder = Path(parent) / "export"
                export(trained, config, folder, weights)
                for engine in options.engines:
                    model = example.Model(folder, session_of(engine, options.threads))
                    example.search(model, rows_of(batches[0]), beams, ALPHA)
                    start = time.perf_counter()
                    found = []
                    for batch in batches:
                        found += example.search(model, rows_of(batch), beams, ALPHA)
                    seconds = time.perf_counter() - start
                    facts = {"engine": engine, "weights": weights, "beams": beams}
                    times = {"seconds": seconds, "library_seconds": library_seconds}
                    if quality is not None:
                        times = {"bleu": quality(found), "library_bleu": quality(library), **times}
                    print(json.dumps({**facts, **compared(library, found), **times}), flush=True)


def load_example():
    file = ROOT / "docs" / "examples" / "onnx_translate.py"
    spec = importlib.util.spec_from_file_location("onnx_translate", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_lines(file):
    from keras_transformer.files.reading import opened, text_lines

    with opened(file) as content:
        return list(text_lines(content, file))


def quality_by(vocabulary, references):
    """Returns a function that computes the BLEU of the best hypotheses."""
    import sacrebleu

    def bleu(found):
        texts = vocabulary.decode([hypotheses[0][1] for hypotheses in found])
        return sacrebleu.corpus_bleu(texts, [references]).score

    return bleu


def export(trained, config, folder, weights):
    from keras_transformer.export.onnx import export_onnx

    card = trained.card(config, weights=weights)
    result = export_onnx(trained.model, trained.vocabularies, folder, card)
    log(f"{weights}: {result['bytes']:,} bytes")


def session_of(engine, threads):
    """Returns a function that makes a session for a graph file."""
    if engine == "onnxruntime":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        return lambda file: onnxruntime.InferenceSession(file, options)
    import openvino

    settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads}
    settings["SNIPPETS_MODE"] = "DISABLE"  # see docs/guides/give.md

    class OpenVINO:
        def __init__(self, file):
            self._model = openvino.compile_model(file, "CPU", settings)

        def run(self, _, inputs):
            found = self._model(inputs)
            return [found[output] for output in self._model.outputs]

    return OpenVINO


def rows_of(batch):
    return [row.tolist() for row in batch]


def search_with_library(engine, batches, beams):
    """Returns pairs (score, ids) for each sentence, best first; and the seconds taken."""
    from keras_transformer.search.engine import Request

    def search(batch):
        found = engine.search(Request(batch, exact=beams, alpha=ALPHA))
        ids = [
            [row[:length].tolist() for row, length in zip(*of_sentence, strict=True)]
            for of_sentence in zip(found.ids, found.lengths, strict=True)
        ]
        return [
            list(zip(scores.tolist(), rows, strict=True))
            for scores, rows in zip(found.scores, ids, strict=True)
        ]

    search(batches[0])
    start = time.perf_counter()
    hypotheses = [sentence for batch in batches for sentence in search(batch)]
    seconds = time.perf_counter() - start
    if beams == 1:
        found = [engine.search_greedily(Request(batch, alpha=ALPHA)) for batch in batches]
        ids = [
            row[0, :length].tolist()
            for each in found
            for row, (length,) in zip(each.ids, each.lengths, strict=True)
        ]
        same = sum(a == b[0][1] for a, b in zip(ids, hypotheses, strict=True))
        log(f"greedy search without scores: {same} of {len(ids)} as with them")
    return hypotheses, seconds


def compared(library, found):
    pairs = list(zip(library, found, strict=True))
    equal = [ours[0][1] == theirs[0][1] for ours, theirs in pairs]
    gaps = np.array([abs(ours[0][0] - theirs[0][0]) for ours, theirs in pairs])
    ids = [([ids for _, ids in ours], [ids for _, ids in theirs]) for ours, theirs in pairs]
    return {
        "sentences": len(pairs),
        "equal": sum(equal),
        "equal_all": sum(ours == theirs for ours, theirs in ids),
        "largest_gap": float(gaps.max()),
        "largest_gap_of_unequal": float(gaps[~np.array(equal)].max(initial=0)),
        "different_translations": len({tuple(ours[0][1]) for ours in library}),
    }


if __name__ == "__main__":
    main()
