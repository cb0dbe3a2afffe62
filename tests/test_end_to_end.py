"""The whole way through the programs: prepare, train, resume, average, evaluate, export, serve."""

import itertools
import json

import pytest

from tests.processes import run_python

SERVE = """
import json, sys
import tensorflow as tf
import tensorflow_text
served = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
answer = served(text=tf.constant(json.loads(sys.argv[2])))
print(json.dumps([text.decode() for text in answer["translation"].numpy().tolist()]))
assert "keras_transformer" not in sys.modules
"""

LEXICON = [
    dict(one="ein", two="zwei", three="drei", four="vier", five="fünf", six="sechs"),
    dict(red="rot", blue="blau", green="grün", white="weiß", black="schwarz", grey="grau"),
    dict(dog="Hund", cat="Katze", cow="Kuh", horse="Pferd", hen="Huhn", fish="Fisch"),
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """All three-word phrases of LEXICON, translated word by word: learned in some seconds."""
    folder = tmp_path_factory.mktemp("corpus")
    splits = {"train": [], "validation": [], "test": []}
    for number, english in enumerate(itertools.product(*LEXICON)):
        german = [words[word] for words, word in zip(LEXICON, english, strict=True)]
        split = {3: "validation", 7: "test"}.get(number % 10, "train")
        splits[split] += [(english, german)] * (4 if split == "train" else 1)
    for split, pairs in splits.items():
        for language, sentences in zip(("en", "de"), zip(*pairs, strict=True), strict=True):
            text = "".join(" ".join(words) + "\n" for words in sentences)
            (folder / f"{split}.{language}").write_text(text, encoding="utf-8")
    return folder


def test_from_two_text_files_to_a_served_model(corpus, tmp_path, run_program, call_program):
    def run(name, *arguments, start=run_program):
        done = start(name, *arguments)
        assert done.code == 0, done.errors
        return done.result

    data, model, export = (tmp_path / name for name in ("data", "model", "export"))
    files = [
        f"--{split}_{side}={corpus}/{split}.{language}"
        for split in ("train", "validation", "test")
        for side, language in (("source", "en"), ("target", "de"))
    ]
    prepare = ["prepare_data", "--dataset=files", f"--data_dir={data}", *files, "--vocab_size=320"]
    prepared = run(*prepare, start=call_program)
    assert prepared["pairs"]["train"] == 692

    train = [
        *("train", f"--data_dir={data}", f"--model_dir={model}", "--preset=tiny"),
        *("--config=num_layers=1", "--config=d_model=64", "--config=d_ff=64"),
        *("--config=dropout=0", "--config=warmup_steps=60", "--tokens_per_batch=512"),
        *("--sample_sentences=0", "--checkpoint_minutes=10"),
    ]
    first = run(*train, "--train_steps=260", start=call_program)
    assert (first["step"], first["checkpoints"]) == (260, 1)
    second = run_program(*train, "--train_steps=320")
    assert (second.result["step"], second.result["checkpoints"]) == (320, 2)
    assert second.errors.endswith(f" -m tensorboard.main --logdir={model}\n")

    averaged = run("average_checkpoints", f"--model_dir={model}", "--last=2", start=call_program)
    assert averaged["step"] == 320
    evaluate = ["evaluate", f"--model_dir={model}", f"--data_dir={data}", "--split=test"]
    scored = run(*evaluate, start=call_program)
    assert scored["chrf"] > 95  # BLEU counts four-word sequences, and there are none
    assert scored["perplexity"] < 1.5

    places = [f"--model_dir={model}", f"--export_dir={export}"]
    run("export", *places, "--signatures=serving_default", start=call_program)
    sentences = ["one red dog", "six white fish"]
    output = tmp_path / "output.txt"
    source = tmp_path / "source.txt"
    source.write_text("".join(f"{line}\n" for line in sentences), encoding="utf-8")
    places = [f"--model_dir={model}", f"--input={source}", f"--output={output}"]
    run("translate", *places, start=call_program)
    translations = output.read_text(encoding="utf-8").splitlines()
    command = ["-c", SERVE, export, json.dumps(sentences)]
    code, served, errors = run_python(*command, folder=tmp_path, cwd="/")
    assert code == 0, errors
    assert json.loads(served.splitlines()[-1]) == translations
    assert translations == ["ein rot Hund", "sechs weiß Fisch"]
