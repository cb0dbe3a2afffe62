"""Compares translation by our SavedModel, CTranslate2 and OpenNMT-tf, with the same weights.

    python benchmarks/decoding.py --model_dir=runs/multi30k/model --data_dir=runs/multi30k/data \
        [--opennmt_python=opennmt/bin/python]      (opennmt_peer.py describes its setup)

There are three cases, with a beam size of 4 unless --beams is given. Each engine has its own
process, and all have the same number of threads. The engines take turns for several rounds, so that
changes in the machine's speed affect all of them alike.

    batch    base with random weights, vocabulary 32,000: 64 sentences of 24 tokens (23 words and
             EOS) at once, each translated to exactly 24 tokens: the length limit is 24, and the
             embeddings of the special ids keep every engine from choosing them
    single   the first 24 of these, one at a time: median and 95th percentile of the latency
    file     --model_dir on the test split of --data_dir: the whole file, in batches of similar
             lengths as each engine makes them: 4,096 padded source tokens for ours, 2,048 for
             CTranslate2, 64 sentences for OpenNMT-tf. Each uses its own length penalty with alpha
             0.6: ((5 + |Y|) / 6)^0.6 for ours and OpenNMT-tf, |Y|^0.6 for CTranslate2. Ours limits
             a translation to 50 tokens more than its source, the others to 50 more than the longest
             source. OpenNMT-tf is skipped if it lacks layers of the model, such as rotary positions

--shape chooses the model and the number of sentences for `batch` and `single`. `student`, the
preset of that name with 256 sentences, gives the fastest translation:

    python benchmarks/decoding.py --cases=batch --shape=student --beams 1 4 --threads 1 2

Our SavedModel is used through keras_transformer.load, as in bin/translate.py. It is exported with
only the signatures needed here (`export --signatures`), since CTranslate2 loads nothing but its
translator. `auto` is ours by CTranslate2, as `translate --engine=auto`. These two read and write
text, so their time includes tokenization; the others read and write tokens. Ours and CTranslate2
each use their threads in the way that was fastest for them: several batches in parallel, one per
thread, except that CTranslate2 uses all threads for the one sentence in `single`.

Both are also measured with int8 weights and, if --engines lists them, with weights in bfloat16
(ours) and float16 (CTranslate2). With --device=cuda, both use a GPU:

    python benchmarks/decoding.py --device=cuda --cases=batch --sentences=1024 \
        --engines keras_transformer keras_transformer_bfloat16 ctranslate2_float16

XLA compiles keras_transformer_xla and keras_transformer_xla_bfloat16, which multiplies in bfloat16,
for each shape of a batch, before it is timed. Programs of an earlier run are taken from the disk.
Scores are not requested. "words/s" counts source words. "first s" is the time in seconds from the
start of the engine's process, imports included, to the end of its first batch. An engine that fails
is left out, after its log. With --memory_mib, ours may only use so much of a GPU's memory.

Ratios are relative to CTranslate2 float32, round by round: of speeds in `batch` and `file` (higher
is better), of latencies in `single` (lower is better). Memory is the peak resident memory of the
engine's process (Linux). "disk MB" is the size of the exported model, and "changed %" the
percentage of sentences whose translation differs from keras_transformer's. Prints a table on stderr
and one JSON line on stdout.
"""

import argparse
import dataclasses
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from step_clock import megabytes, since_start
from timing import InputError, log, run
from workers import run_worker

ALPHA = 0.6
CASES = ("batch", "single", "file")
OURS = {  # name -> export options
    "keras_transformer": {},
    "keras_transformer_xla": {},
    "keras_transformer_int8": {"weights": "int8"},
    "keras_transformer_bfloat16": {"weights": "bfloat16"},
    "keras_transformer_xla_bfloat16": {"weights": "bfloat16"},
}
COMPILED = ("keras_transformer_xla", "keras_transformer_xla_bfloat16")
CTRANSLATE2 = {  # name -> compute type
    "ctranslate2_float32": "float32",
    "ctranslate2_int8": "int8",
    "ctranslate2_float16": "float16",
}
AUTO = "auto"  # ours as --engine=auto translates: from text to text by CTranslate2
ENGINES = (*OURS, AUTO, *CTRANSLATE2, "opennmt_tf")
ON_REQUEST = (*COMPILED, "keras_transformer_bfloat16", "ctranslate2_float16")
USUAL_ENGINES = [engine for engine in ENGINES if engine not in ON_REQUEST]
REFERENCE = "ctranslate2_float32"
COLUMNS = ("sentences/s", "tokens/s", "words/s", "median ms", "p95 ms", "first s", "peak MB")
COLUMNS += ("disk MB", "BLEU", "changed %", "ratio")
# preset (post-norm), sentences, tokens per sentence with EOS, vocabulary; "small" is for trials
SHAPES = {
    "base": ("base", 64, 24, 32000),
    "student": ("student", 256, 24, 32000),
    "small": ("tiny", 8, 24, 500),
}
SINGLE, WARM_UP = 24, 64  # sentences


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=USUAL_ENGINES)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each engine")
    parser.add_argument("--threads", type=int, nargs="+", default=[2])
    parser.add_argument("--beams", type=int, nargs="+", default=[4], help="1 is greedy search")
    parser.add_argument("--opennmt_python", help="a Python with OpenNMT-tf installed")
    parser.add_argument("--model_dir", help="a trained model with a BPE vocabulary, for `file`")
    parser.add_argument("--data_dir", help="its data, for `file`")
    parser.add_argument("--checkpoint", default="latest", help="checkpoint of --model_dir")
    parser.add_argument(
        "--limit", type=int, help="number of lines of the test split (default: all)"
    )
    parser.add_argument("--shape", choices=SHAPES, default="base", help="for `batch` and `single`")
    parser.add_argument("--sentences", type=int, help="for `batch` (default: the shape's)")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--memory_mib", type=int, help="limit on a GPU's memory, for ours")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        (threads,) = arguments.threads
        if arguments.memory_mib:
            limit_memory(arguments.memory_mib)
        return print(json.dumps(work(*arguments.worker, threads, arguments.device)))
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # or this process would hold the GPU's memory
    if "file" in arguments.cases and not (arguments.model_dir and arguments.data_dir):
        parser.error("the case `file` needs --model_dir and --data_dir")
    if "opennmt_tf" in arguments.engines and not arguments.opennmt_python:
        log("opennmt_tf: skipped, as there is no --opennmt_python")
        arguments.engines.remove("opennmt_tf")
    with tempfile.TemporaryDirectory() as folder:
        results = {
            f"{case}, beam {beams}, threads {threads}": compare(
                case, beams, threads, Path(folder), arguments
            )
            for case in arguments.cases
            for beams in arguments.beams
            for threads in arguments.threads
        }
    print_table(results)
    print(json.dumps({"rounds": arguments.rounds, **results}))


def compare(case, beams, threads, folder, arguments):
    """Runs the engines in turn: {engine: {column: median over the rounds}}."""
    folder = folder / f"{'trained' if case == 'file' else 'random'}-{beams}"
    if not folder.exists():
        prepare = prepare_trained if case == "file" else prepare_random
        prepare(folder, beams, arguments)
    engines = list(arguments.engines)
    if "opennmt_tf" in engines and not opennmt_has(read_job(folder)["model"]):
        log(f"opennmt_tf: left out of {case}, as it lacks layers of the model")
        engines.remove("opennmt_tf")
    rounds, texts = {engine: [] for engine in engines}, {}
    for _ in range(arguments.rounds):
        for engine in list(engines):
            try:
                done = run_engine(engine, case, folder, threads, arguments)
            except InputError as error:
                log(f"{engine}: left out of {case}: {error}")
                engines.remove(engine)
                del rounds[engine]
                continue
            row, texts[engine] = columns(case, done, folder)
            row["disk MB"] = disk_megabytes(folder / exported_folder(engine))
            if case == "file" and "keras_transformer" in texts:
                pairs = zip(texts["keras_transformer"], texts[engine], strict=True)
                row["changed %"] = 100 * statistics.mean(one != other for one, other in pairs)
            rounds[engine].append(row)
            log(f"{case} beam {beams} threads {threads} {engine} {row}")
    key = "median ms" if case == "single" else "sentences/s"
    for runs in rounds.values() if REFERENCE in rounds else ():
        for row, reference in zip(runs, rounds[REFERENCE], strict=True):
            row["ratio"] = row[key] / reference[key]
    return {
        engine: {name: statistics.median(row[name] for row in runs) for name in runs[0]}
        for engine, runs in rounds.items()
    }


def opennmt_has(config):
    """Returns whether OpenNMT-tf supports a model, given the fields of its configuration."""
    has = {"positions": "sinusoidal", "activation": "relu"}
    return all(config[name] == value for name, value in has.items())


def exported_folder(engine):
    return "weights.npz" if engine == "opennmt_tf" else engine if engine in OURS else "ctranslate2"


def disk_megabytes(path):
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files) / 1e6


def run_engine(engine, case, folder, threads, arguments):
    """Runs an engine's process: {"seconds": [...], "peak_megabytes", "outputs": [...]}."""
    names = ["OMP_NUM_THREADS", "TF_NUM_INTEROP_THREADS"]
    if engine == "opennmt_tf":
        variables = dict.fromkeys([*names, "TF_NUM_INTRAOP_THREADS"], str(threads))
        python = arguments.opennmt_python
        return run_worker("opennmt_peer.py", case, str(folder), python=python, **variables)
    variables = dict.fromkeys(names, str(threads))
    variables["CUDA_VISIBLE_DEVICES"] = "0" if arguments.device == "cuda" else "-1"
    flags = [f"--threads={threads}", f"--device={arguments.device}"]
    if arguments.memory_mib and engine in OURS:
        flags.append(f"--memory_mib={arguments.memory_mib}")
    return run_worker("decoding.py", *flags, "--worker", engine, case, str(folder), **variables)


def columns(case, done, folder):
    """Returns a table row and the translations, from the output of an engine's process."""
    job, seconds = read_job(folder), done["seconds"]
    texts, lengths = read_outputs(done["outputs"], folder)
    row = {"sentences/s": len(texts) / sum(seconds), "tokens/s": sum(lengths) / sum(seconds)}
    row["words/s"] = sum(len(text.split()) for text in job["texts"]) / sum(seconds)
    row["peak MB"] = done["peak_megabytes"]
    row["first s"] = done["first_seconds"]
    if case == "single":
        row["median ms"] = 1000 * statistics.median(seconds)
        row["p95 ms"] = 1000 * sorted(seconds)[-(-95 * len(seconds) // 100) - 1]
    if case == "file":
        from keras_transformer.use.evaluate.translation import translation_scores

        row["BLEU"] = translation_scores(texts, job["references"])["bleu"]
    elif set(lengths) != {job["max_length"]}:
        sys.exit(f"translations must have {job['max_length']} tokens. Received: {set(lengths)}")
    return row, texts


def read_outputs(outputs, folder):
    """Returns an engine's outputs, texts or tokens, as texts, with their numbers of tokens."""
    if not (folder / "vocabulary.model").exists():  # each word is a token, and there is no EOS
        texts = [text if isinstance(text, str) else " ".join(text) for text in outputs]
        return texts, [len(text.split()) for text in texts]
    import sentencepiece

    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "vocabulary.model"))
    texts = [text if isinstance(text, str) else pieces.decode(text) for text in outputs]
    return texts, [len(pieces.encode(text)) + 1 for text in texts]


def prepare_random(folder, beams, arguments):
    """Exports a model with random weights that never ends a sentence; draws random sentences."""
    import keras
    import numpy as np

    from keras_transformer.core.model.transformer import Transformer
    from keras_transformer.core.presets import preset
    from keras_transformer.core.search.config import DecodingConfig
    from keras_transformer.core.vocabulary.pair import VocabularyPair
    from keras_transformer.core.vocabulary.wordpiece import SPECIAL_WORDPIECES

    name, sentences, tokens, vocab_size = SHAPES[arguments.shape]
    sentences = arguments.sentences or sentences
    special = len(SPECIAL_WORDPIECES)
    words = [f"w{number}" for number in range(special, vocab_size)]
    lines = "".join(f"{piece}\n" for piece in (*SPECIAL_WORDPIECES, *words))
    folder.mkdir()
    (folder / "vocabulary.txt").write_text(lines, encoding="utf-8")
    keras.utils.set_random_seed(1)
    config, _ = preset(name, vocab_size)
    model = Transformer(config)
    # With a bias of 1 in the last normalisation, every state sums to d_model, so the logits of
    # these rows are -100.
    last_norm = model.decoder.layers[-1].feed_forward_norm
    last_norm.beta.assign(np.ones(config.d_model))
    matrix = np.array(model.embedding.embeddings.value)
    matrix[:special] = -100 / config.d_model
    model.embedding.embeddings.assign(matrix)
    draws = np.random.default_rng(1).choice(words, (sentences, tokens - 1))
    job = {"texts": [" ".join(row) for row in draws], "max_length": tokens}
    decoding = DecodingConfig(beam_size=beams, alpha=ALPHA, extra_length=0)
    write_job(folder, model, VocabularyPair.load(folder), decoding, job, arguments)


def prepare_trained(folder, beams, arguments):
    """Exports a trained model, and the test split of its data."""
    from keras_transformer.core.search.config import DecodingConfig
    from keras_transformer.core.training.checkpoint_weights import restore_model
    from keras_transformer.core.training.model_directory import read_description
    from keras_transformer.core.vocabulary.pair import VocabularyPair
    from pipelines.batches.data_set import DataSet

    vocabularies = VocabularyPair.load(arguments.model_dir)
    file = vocabularies.target.file
    if file.name != "vocabulary.model":
        sys.exit(f"--model_dir must have one BPE vocabulary, vocabulary.model. Received: {file}")
    model, _ = restore_model(arguments.model_dir, arguments.checkpoint)
    longest = read_description(arguments.model_dir).max_length
    decoding = DecodingConfig(beam_size=beams, alpha=ALPHA, max_source_length=longest)
    texts, references = DataSet.open(arguments.data_dir).text("test")
    job = {"texts": texts[: arguments.limit], "references": references[: arguments.limit]}
    # The others have one limit for all sentences: the one ours has for the longest source.
    most = max(len(ids) + 1 for ids in vocabularies.source.encode(job["texts"]))  # EOS included
    job["max_length"] = min(most, longest) + decoding.extra_length
    folder.mkdir()
    (folder / file.name).write_bytes(file.read_bytes())
    write_job(folder, model, vocabularies, decoding, job, arguments)


def write_job(folder, model, vocabularies, decoding, job, arguments):
    """Writes the model in each engine's format, and the sentences."""
    import numpy as np

    from keras_transformer.core.training.checkpoint_files import CheckpointInfo
    from keras_transformer.core.training.model_directory import describe_unknown_training
    from keras_transformer.kit.exchange.ctranslate2 import export_ctranslate2
    from keras_transformer.kit.exchange.saved_model import export_saved_model
    from keras_transformer.use.store.card import ModelCard

    description = describe_unknown_training(model.config, vocabularies.fingerprints)
    checkpoint = CheckpointInfo("benchmark")
    card = ModelCard(description, decoding, model.count_params(), checkpoint)
    signatures = ["greedy_ids" if decoding.is_greedy else "search_ids"]
    for engine in arguments.engines:
        if engine in OURS:
            how = OURS[engine]
            export_saved_model(
                [model],
                vocabularies,
                folder / engine,
                dataclasses.replace(card, weights=how.get("weights", "float32")),
                signatures=signatures,
            )
    export_ctranslate2(model, vocabularies, folder / "ctranslate2", card)
    weights = {variable.path: np.asarray(variable.value) for variable in model.trainable_variables}
    np.savez(folder / "weights.npz", **weights)
    tokens = vocabularies.target.pieces
    job["sources"] = [[tokens[i] for i in ids] for ids in vocabularies.source.encode(job["texts"])]
    job.update(beams=decoding.beam_size, vocabulary=tokens, model=dataclasses.asdict(model.config))
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")


def read_job(folder):
    return json.loads((Path(folder) / "job.json").read_text(encoding="utf-8"))


def limit_memory(mib):
    """Limits the memory that TensorFlow takes from a GPU."""
    import tensorflow as tf

    limit = [tf.config.LogicalDeviceConfiguration(memory_limit=mib)]
    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.set_logical_device_configuration(gpu, limit)


def work(engine, case, folder, threads, device):
    """Loads our SavedModel or CTranslate2 and measures it."""
    job, folder = read_job(folder), Path(folder)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    if engine in OURS or engine == AUTO:
        from keras_transformer.core.search.engines.streams import share_cores
        from keras_transformer.loading import load
        from keras_transformer.support.xla_cache import default_folder, keep_programs

        share_cores()
        compiles = engine in COMPILED
        if compiles:
            keep_programs(default_folder())
        path = folder / exported_folder(engine)
        exported = load(path, xla="on" if compiles else "off", n_best=1)

        def translate_texts(texts):
            return [best.text for best, *_ in exported.translate(texts, scores=False)]

        return measure(case, job["texts"], translate_texts, compiles)
    import ctranslate2

    layout = (1, threads) if case == "single" or device == "cuda" else (threads, 1)
    translator = ctranslate2.Translator(
        str(folder / "ctranslate2"),
        device=device,
        compute_type=CTRANSLATE2[engine],
        inter_threads=layout[0],
        intra_threads=layout[1],
    )
    tokens = sum(map(len, job["sources"]))
    settings = {
        "beam_size": job["beams"],
        "length_penalty": ALPHA,
        "batch_type": "tokens",
    }
    settings["max_batch_size"] = min(2048, -(-tokens // layout[0]))
    settings["max_decoding_length"] = job["max_length"]

    def translate_tokens(sources):
        return [best.hypotheses[0] for best in translator.translate_batch(sources, **settings)]

    return measure(case, job["sources"], translate_tokens)


def measure(case, sentences, translate, compiles=False):
    """Times `translate`, a function from a list of sentences to a list of translations.

    If it compiles a program for each shape, all of them are compiled before they are timed.
    """
    translate(sentences[:WARM_UP])
    first_seconds = since_start()
    translate(sentences[:1])
    batches = [[sentence] for sentence in sentences[:SINGLE]] if case == "single" else [sentences]
    if compiles:
        for batch in batches:
            translate(batch)
    seconds, outputs = [], []
    for batch in batches:
        begun = time.perf_counter()
        outputs += translate(batch)
        seconds.append(time.perf_counter() - begun)
    return {
        "seconds": seconds,
        "first_seconds": first_seconds,
        "peak_megabytes": megabytes("VmHWM"),
        "outputs": outputs,
    }


def print_table(results):
    from keras_transformer.support.text_table import table_of

    columns = {"case": "case", "engine": "engine", **{name: f"{name}:.2f" for name in COLUMNS}}
    rows = [
        {"case": case, "engine": engine, **dict.fromkeys(COLUMNS), **row}
        for case, engines in results.items()
        for engine, row in engines.items()
    ]
    log(table_of(columns, rows))


if __name__ == "__main__":
    run(main)
