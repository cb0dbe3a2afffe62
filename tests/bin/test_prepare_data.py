import json
import sys

import pytest


@pytest.fixture
def text(tmp_path):
    for name, line in (("en", "the dog sees the cat"), ("de", "der Hund sieht die Katze")):
        (tmp_path / f"train.{name}").write_text(f"{line}\n" * 30)
    return {
        "train_source": str(tmp_path / "train.en"),
        "train_target": str(tmp_path / "train.de"),
        "data_dir": str(tmp_path / "data"),
    }


def flags(**values):
    return [f"--{name}={value}" for name, value in values.items()]


def test_files_to_a_data_set_and_again(run_program, call_program, text, tmp_path):
    arguments = flags(dataset="files", vocab_size=280, max_length=40, **text)
    first = run_program("prepare_data", *arguments)
    assert first.code == 0, first.errors
    assert first.output.count("\n") == 1  # all but the result goes to stderr
    assert first.result["pairs"] == {"train": 30} and first.result["vocab_size"] == 280
    assert json.loads((tmp_path / "data" / "metadata.json").read_text())["max_length"] == 40
    again = call_program("prepare_data", *arguments)
    assert again.code == 0 and again.result["up_to_date"] and again.result["pairs"] == {"train": 30}


def test_files_of_both_sides_beside_parallel_ones(call_program, text, tmp_path):
    table, memory = tmp_path / "more.tsv", tmp_path / "memory.tmx"
    table.write_text("a dog\tein Hund\n")
    unit = '<tu><tuv lang="de"><seg>ja</seg></tuv><tuv lang="en"><seg>yes</seg></tuv></tu>'
    memory.write_text(f"<tmx><body>{unit}</body></tmx>")
    files = {"train_pairs": f"{table},{memory}", "test_pairs": memory, "weights": "1,2,3"}
    arguments = flags(dataset="files", vocab_size=280, **files, **text)
    alone = call_program("prepare_data", *arguments)
    assert alone.code == 1
    assert "--source_language must be given with --dataset=files. Received: none" in alone.errors
    languages = flags(source_language="en", target_language="de")
    done = call_program("prepare_data", *arguments, *languages)
    assert done.code == 0, done.errors
    assert done.result["pairs"] == {"train": 30 + 2 + 3, "test": 1}


def test_filters_and_weights(call_program, text, tmp_path):
    for side, lines in (
        ("en", ["a dog", "a dog", "x " * 9]),
        ("de", ["ein Hund", "ein Hund", "y"]),
    ):
        (tmp_path / f"more.{side}").write_text("\n".join([*lines, ""]))
        flag = {"en": "train_source", "de": "train_target"}[side]
        text[flag] += f",{tmp_path / 'more'}.{side}"
    rules = {"length_ratio": 3, "length_limits": "1,60", "weights": "1,2.0"}
    done = call_program(
        "prepare_data", *flags(dataset="files", vocab_size=280, **rules, **text), "--dedupe"
    )
    assert done.result["pairs"] == {"train": 3}
    dropped = {"blank": 0, "too_long": 0, "length_limits": 0, "length_ratio": 1, "dedupe": 30}
    assert done.result["dropped"] == {"train": dropped}
    assert "dedupe leaves out 30 of 33 training pairs" in done.errors
    assert "length_ratio leaves out 1 of 33 training pairs" in done.errors


def test_pairs_are_added(call_program, text):
    shares = "upper:1,no_stop:1"
    done = call_program(
        "prepare_data", *flags(dataset="files", vocab_size=290, augment=shares, **text)
    )
    assert done.result["added"] == {"upper": 30, "no_stop": 0}  # no line ends in a full stop
    assert done.result["pairs"] == {"train": 60}
    assert "augment=upper adds 30 pairs to 30" in done.errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dataset=files"], "--train_source must be given with --dataset=files"),
        (
            ["--dataset=files", "--train_source=no.en", "--train_target=no.de"],
            "--train_source must be a readable file. Received: no.en (No such file or directory)",
        ),
        (
            ["--dataset=files", "--train_source=a", "--train_target=b", "--test_source=c"],
            "--test_target must be given with --dataset=files",
        ),
        (
            ["--dataset=files", "--grammar_pairs=9"],
            "--grammar_pairs must not be given with --dataset=files. Received: 9",
        ),
        (
            ["--dataset=grammar", "--train_source=a"],
            "--train_source must not be given with --dataset=grammar",
        ),
        (
            ["--dataset=grammar", "--source_language=en"],
            "--source_language must not be given with --dataset=grammar. Received: en",
        ),
        (["--dataset=grammar", "--grammar_pairs=0"], "--grammar_pairs must be at least 1"),
        (
            ["--dataset=tfds:x", "--target_language=de"],
            "--source_language must be given with --dataset=tfds:x",
        ),
        (["--dataset=wmt"], "--dataset must be files, grammar, treebank or tfds:NAME. Received: w"),
        (["--dataset=treebank"], "--train_trees must be given with --dataset=treebank"),
        (
            ["--dataset=treebank", "--train_trees=none.mrg"],
            "--train_trees must be a readable file. Received: none.mrg",
        ),
        (
            ["--dataset=treebank", "--train_trees=a", "--tokenizer=wordpiece"],
            "--tokenizer must be bpe with --dataset=treebank",
        ),
        (
            ["--dataset=treebank", "--train_trees=a", "--tree_words=pos"],
            "flag --tree_words=pos: value should be one of <xx|tags|keep>",
        ),
        (["--dataset=files", "--tree_words=tags"], "--tree_words must not be given with"),
        (["--dataset=files", "--tokenizer=words"], "--tokenizer"),
        (["--dataset=files", "--vocabulary=no.model"], "--vocabulary must be a readable file. R"),
        (["--dataset=files", "--vocabulary=a,b"], "--vocabulary must be one file, or SOURCE,TARG"),
        (
            ["--dataset=files", "--test_source=a", "--test_source=b"],
            "--test_source must be given once, with commas between its values. Received: 2 times",
        ),
        (["--dataset=files", "--max_length=1"], "--max_length must be at least 2"),
        (["--dataset=files", "--weights=1,x"], "--weights must be numbers, separated by commas. R"),
        (
            ["--dataset=files", "--length_limits=1.5,9"],
            "--length_limits must be whole numbers, sep",
        ),
        (["--dataset=files", "--length_limits=9"], "--length_limits must be two values, separated"),
        (
            ["--dataset=files", "--length_limits=60,1"],
            "--length_limits must be two values, separated by a comma, the first not above the sec",
        ),
        (
            ["--dataset=files", "--weights=0,0"],
            "--weights must have a number above 0. Received: [0",
        ),
        (["--dataset=files", "--scripts=Latin"], "--scripts must be two values, separated by a co"),
        (
            ["--dataset=files", "--number_overlap=2"],
            "--number_overlap must be from 0 to 1. Received",
        ),
        (
            ["--dataset=files", "--augment=upper"],
            "--augment must be kinds and their shares, each k",
        ),
        (["--dataset=files", "--augment=upper:0.1,upper:0.2"], "each kind once, as in upper:0.05"),
        (["--dataset=files", "--augment=lower:0.1"], "--augment must be shares of upper, title, t"),
        (
            ["--dataset=files", "--augment=title:2"],
            "--augment.title must be above 0 and at most 1.",
        ),
        (
            ["--dataset=grammar", "--script_share=0.9"],
            "--script_share must be given with --scripts. Received: 0.9",
        ),
        (
            ["--dataset=grammar", "--length_unit=characters"],
            "--length_unit must be given with --length_limits or --length_ratio. Received: char",
        ),
        (["--dataset=treebank", "--augment=upper:1"], "--augment must not be given with --dataset"),
        (["--dataset=treebank", "--dedupe"], "--dedupe must not be given with --dataset=treebank"),
        (["--dataset=files", "--vocab_size=ten"], "--vocab_size"),
        (["--dataset=grammar", "--runner=flink"], "--runner=flink: value should be one of <local|"),
        (
            ["--dataset=grammar", "--pipeline_options=--runner=FlinkRunner"],
            "--pipeline_options must not be given without --runner=beam. Received: --runner=Flink",
        ),
        ([], "--dataset"),
    ],
)
def test_wrong_flags_end_in_one_line(call_program, tmp_path, arguments, message):
    done = call_program("prepare_data", f"--data_dir={tmp_path / 'data'}", *arguments, cwd=tmp_path)
    assert done.code == 1 and not done.output
    (line,) = [line for line in done.errors.splitlines() if line.startswith("error: ")]
    assert message in line
    assert not (tmp_path / "data").exists()


def test_the_default_vocabulary_size_is_no_exception(call_program, text):
    done = call_program("prepare_data", *flags(dataset="files", **text))
    assert done.code == 1
    assert "error: --vocab_size must be at most " in done.errors
    assert "Received: 37000" in done.errors


def test_beam_is_an_extra(call_program, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    monkeypatch.delitem(sys.modules, "pipelines.beam", raising=False)
    data_dir = tmp_path / "data"
    done = call_program("prepare_data", *flags(dataset="grammar", runner="beam", data_dir=data_dir))
    assert done.code == 1 and not data_dir.exists()
    rule = '--runner=beam must find Apache Beam (pip install "keras-transformer-nmt[beam]")'
    assert done.errors.splitlines()[-1] == f"error: {rule}. Received: none installed"


def test_a_vocabulary_that_is_none(call_program, text, tmp_path):
    (tmp_path / "no.model").write_text("the\nof\n")
    arguments = flags(dataset="files", vocabulary="no.model", **text)
    done = call_program("prepare_data", *arguments, cwd=tmp_path)
    assert done.code == 1
    message = "error: no.model must be a bpe vocabulary. Received: another file (it is no SentenceP"
    assert message in done.errors.splitlines()[-1]
