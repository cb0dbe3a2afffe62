"""The whole way through the programs: prepare, train, resume, average, evaluate, export, serve."""

import itertools
import json
import subprocess
import sys

import pytest

SERVE = """
import json, sys
import tensorflow as tf
import tensorflow_text
served = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
answer = served(text=tf.constant(json.loads(sys.argv[2])))
print(json.dumps([text.decode() for text in answer["translation"].numpy().tolist()]))
"""


LEXICON = [
    dict(one="ein", two="zwei", three="drei", four="vier", five="fünf", six="sechs"),
    dict(red="rot", blue="blau", green="grün", white="weiß", black="schwarz", grey="grau"),
    dict(dog="Hund", cat="Katze", cow="Kuh", horse="Pferd", hen="Huhn", fish="Fisch"),
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """All three-word phrases of LEXICON, translated word by word: learnt in some seconds."""
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
        *("--config=dropout=0", "--config=warmup_steps=100", "--tokens_per_batch=512"),
        *("--sample_sentences=5", "--checkpoint_minutes=10"),
    ]
    first = run(*train, "--train_steps=250")
    assert (first["step"], first["checkpoints"]) == (250, 1)
    second = run_program(*train, "--train_steps=300")
    assert (second.result["step"], second.result["checkpoints"]) == (300, 2)
    assert second.errors.endswith(f" -m tensorboard.main --logdir={model}\n")

    averaged = run("average_checkpoints", f"--model_dir={model}", "--last=2", start=call_program)
    assert averaged["step"] == 300
    evaluate = ["evaluate", f"--model_dir={model}", f"--data_dir={data}", "--split=test"]
    scored = run(*evaluate, start=call_program)
    assert scored["chrf"] > 95  # BLEU counts four-word sequences, and there are none
    assert scored["perplexity"] < 1.5

    run("export", f"--model_dir={model}", f"--export_dir={export}", start=call_program)
    sentences = ["one red dog", "six white fish"]
    output = tmp_path / "output.txt"
    source = tmp_path / "source.txt"
    source.write_text("".join(f"{line}\n" for line in sentences), encoding="utf-8")
    run("translate", f"--model_dir={model}", f"--input={source}", f"--output={output}")
    translations = output.read_text(encoding="utf-8").splitlines()
    command = [sys.executable, "-c", SERVE, str(export), json.dumps(sentences)]
    served = subprocess.run(command, cwd="/", capture_output=True, text=True, check=True)
    assert json.loads(served.stdout.splitlines()[-1]) == translations
    assert translations == ["ein rot Hund", "sechs weiß Fisch"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--preset=huge"], "--preset must be one of tiny, base"),
        (["--config=droput=0.1"], "--config key must be one of"),
        (["--precision=int8"], "--precision"),
        (["--train_steps=0"], "--train_steps must be at least 1. Received: 0"),
        (["--tokens_per_batch=2"], "--tokens_per_batch must be at least"),
        (["--replicas=2"], "--replicas must go with the strategy mirrored"),
        (["--strategy=mirrored"], "--strategy=mirrored must find a GPU"),
        (["--no_such_flag=1"], "no_such_flag"),
        (["stray"], "every argument must be a flag"),
    ],
)
def test_bad_flags_of_train_end_in_one_line(prepared, tmp_path, call_program, arguments, message):
    model = tmp_path / "model"
    done = call_program("train", f"--data_dir={prepared}", f"--model_dir={model}", *arguments)
    assert done.code in (1, 2)
    last = done.errors.strip().splitlines()[-1]
    assert last.startswith("error: ")
    assert message in last
    assert not model.exists()


def test_model_dir_of_another_model_is_left_alone(prepared, untrained, call_program):
    config = (untrained / "config.json").read_bytes()
    done = call_program("train", f"--data_dir={prepared}", f"--model_dir={untrained}")
    assert done.code == 1
    assert "--model_dir must be new or hold the model asked for" in done.errors
    assert "num_layers: 1, not 6" in done.errors
    assert (untrained / "config.json").read_bytes() == config


def test_data_dir_that_is_none(tmp_path, call_program):
    done = call_program("train", f"--data_dir={tmp_path}", f"--model_dir={tmp_path / 'model'}")
    assert done.code == 1
    assert str(tmp_path) in done.errors.strip().splitlines()[-1]
