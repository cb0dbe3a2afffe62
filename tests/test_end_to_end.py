"""The whole way through the programs: prepare, train, resume, average, evaluate, export, serve."""

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


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Counting from one language to another: learnt in a minute's training on two cores."""
    numbers = {
        "one": "eins",
        "two": "zwei",
        "three": "drei",
        "four": "vier",
        "five": "fünf",
        "six": "sechs",
    }
    words = list(numbers)
    folder = tmp_path_factory.mktemp("corpus")
    sources = {"train": [], "validation": [], "test": []}
    for number in range(6**3):
        line = [words[number // 36], words[number // 6 % 6], words[number % 6]]
        split = {3: "validation", 7: "test"}.get(number % 10, "train")
        sources[split].append(line)
    for split, lines in sources.items():
        repeated = lines * (4 if split == "train" else 1)
        english = "".join(" ".join(line) + "\n" for line in repeated)
        german = "".join(" ".join(numbers[w] for w in line) + "\n" for line in repeated)
        (folder / f"{split}.en").write_text(english, encoding="utf-8")
        (folder / f"{split}.de").write_text(german, encoding="utf-8")
    return folder


def test_from_two_text_files_to_a_served_model(corpus, tmp_path, run_program):
    def run(name, *arguments):
        done = run_program(name, *arguments)
        assert done.code == 0, done.errors
        return done.result

    data, model, export = (tmp_path / name for name in ("data", "model", "export"))
    files = [
        f"--{split}_{side}={corpus}/{split}.{language}"
        for split in ("train", "validation", "test")
        for side, language in (("source", "en"), ("target", "de"))
    ]
    prepared = run(
        *("prepare_data", "--dataset=files", f"--data_dir={data}", *files, "--vocab_size=295")
    )
    assert prepared["pairs"]["train"] == 692

    train = [
        *("train", f"--data_dir={data}", f"--model_dir={model}", "--preset=tiny"),
        *("--config=num_layers=1", "--config=d_model=64", "--config=d_ff=64"),
        *("--config=dropout=0", "--config=warmup_steps=100", "--tokens_per_batch=512"),
        *("--sample_sentences=5", "--checkpoint_minutes=10"),
    ]
    first = run(*train, "--train_steps=400")
    assert (first["step"], first["checkpoints"]) == (400, 1)
    second = run(*train, "--train_steps=500")
    assert (second["step"], second["checkpoints"]) == (500, 2)
    assert second["validation_loss"] < first["validation_loss"]

    averaged = run("average_checkpoints", f"--model_dir={model}", "--last=2")
    assert averaged["step"] == 500
    scored = run("evaluate", f"--model_dir={model}", f"--data_dir={data}", "--split=test")
    assert scored["bleu"] > 90
    assert scored["perplexity"] < 1.5

    run("export", f"--model_dir={model}", f"--export_dir={export}")
    sentences = ["one two three", "six five four"]
    output = tmp_path / "output.txt"
    source = tmp_path / "source.txt"
    source.write_text("".join(f"{line}\n" for line in sentences), encoding="utf-8")
    run("translate", f"--model_dir={model}", f"--input={source}", f"--output={output}")
    translations = output.read_text(encoding="utf-8").splitlines()
    command = [sys.executable, "-c", SERVE, str(export), json.dumps(sentences)]
    served = subprocess.run(command, cwd="/", capture_output=True, text=True, check=True)
    assert json.loads(served.stdout.splitlines()[-1]) == translations
    assert translations == ["eins zwei drei", "sechs fünf vier"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--preset=huge"], "--preset must be one of base"),
        (["--config=droput=0.1"], "--config key must be one of"),
        (["--precision=int8"], "--precision"),
        (["--train_steps=0"], "--train_steps must be at least 1. Received: 0"),
        (["--tokens_per_batch=2"], "--tokens_per_batch must be at least"),
        (["--replicas=2"], "--replicas must go with --strategy=mirrored"),
        (["--strategy=mirrored"], "--strategy=mirrored must find a GPU"),
        (["--no_such_flag=1"], "no_such_flag"),
        (["stray"], "every argument must be a flag"),
    ],
)
def test_bad_flags_of_train_end_in_one_line(prepared, tmp_path, run_program, arguments, message):
    model = tmp_path / "model"
    done = run_program("train", f"--data_dir={prepared}", f"--model_dir={model}", *arguments)
    assert done.code in (1, 2)
    last = done.errors.strip().splitlines()[-1]
    assert last.startswith("error: ")
    assert message in last
    assert not model.exists()


def test_model_dir_of_another_model_is_left_alone(prepared, untrained, run_program):
    config = (untrained / "config.json").read_bytes()
    done = run_program("train", f"--data_dir={prepared}", f"--model_dir={untrained}")
    assert done.code == 1
    assert "--model_dir must be new or hold the model asked for" in done.errors
    assert "num_layers: 6, not 1" in done.errors
    assert (untrained / "config.json").read_bytes() == config


def test_data_dir_that_is_none(tmp_path, run_program):
    done = run_program("train", f"--data_dir={tmp_path}", f"--model_dir={tmp_path / 'model'}")
    assert done.code == 1
    assert str(tmp_path) in done.errors.strip().splitlines()[-1]
