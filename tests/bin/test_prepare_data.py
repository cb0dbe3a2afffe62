import json
import re
import sys

import pytest

from tests.refusals import check_line


@pytest.fixture
def text(tmp_path):
    for name, line in (("en", "the dog sees the cat"), ("de", "der Hund sieht die Katze")):
        (tmp_path / f"train.{name}").write_text(f"{line}\n" * 30)
    return {
        "train_source": str(tmp_path / "train.en"),
        "train_target": str(tmp_path / "train.de"),
        "data_dir": str(tmp_path / "data"),
    }


def words(**values):
    return [f"--{name}={value}" for name, value in values.items()]


@pytest.mark.tensorflow
def test_files_to_a_data_set_and_again(run_program, call_program, text, tmp_path):
    arguments = words(dataset="files", vocab_size=280, max_length=40, **text)
    first = run_program("prepare_data", *arguments)
    assert first.code == 0, first.errors
    assert first.output.count("\n") == 1  # all but the result goes to stderr
    assert first.result["pairs"] == {"train": 30} and first.result["vocab_size"] == 280
    assert json.loads((tmp_path / "data" / "metadata.json").read_text())["max_length"] == 40
    again = call_program("prepare_data", *arguments)
    assert again.code == 0 and again.result["up_to_date"] and again.result["pairs"] == {"train": 30}


@pytest.mark.tensorflow
def test_files_of_both_sides_beside_parallel_ones(call_program, text, tmp_path):
    table, memory = tmp_path / "more.tsv", tmp_path / "memory.tmx"
    table.write_text("a dog\tein Hund\n")
    unit = '<tu><tuv lang="de"><seg>ja</seg></tuv><tuv lang="en"><seg>yes</seg></tuv></tu>'
    memory.write_text(f"<tmx><body>{unit}</body></tmx>")
    files = {"train_pairs": f"{table},{memory}", "test_pairs": memory, "weights": "1,2,3"}
    arguments = words(dataset="files", vocab_size=280, **files, **text)
    alone = call_program("prepare_data", *arguments)
    assert alone.code == 1
    check_line(alone.errors, "--source_language", "none")
    languages = words(source_language="en", target_language="de")
    done = call_program("prepare_data", *arguments, *languages)
    assert done.code == 0, done.errors
    assert done.result["pairs"] == {"train": 30 + 2 + 3, "test": 1}


@pytest.mark.tensorflow
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
        "prepare_data", *words(dataset="files", vocab_size=280, **rules, **text), "--dedupe"
    )
    assert done.result["pairs"] == {"train": 3}
    dropped = {"blank": 0, "too_long": 0, "length_limits": 0, "length_ratio": 1, "dedupe": 30}
    assert done.result["dropped"] == {"train": dropped}
    for rule, count in (("dedupe", 30), ("length_ratio", 1)):
        assert re.search(rf"\b{rule} .*\b{count} of 33\b", done.errors)


@pytest.mark.tensorflow
def test_pairs_are_added(call_program, text):
    shares = "upper:1,no_stop:1"
    done = call_program(
        "prepare_data", *words(dataset="files", vocab_size=290, augment=shares, **text)
    )
    assert done.result["added"] == {"upper": 30, "no_stop": 0}  # no line ends in a full stop
    assert done.result["pairs"] == {"train": 60}
    assert re.search(r"upper .*\b30\b.*\b30$", done.errors, re.M)


@pytest.mark.parametrize(
    ("arguments", "subject", "received", "about"),
    [
        ("", "--dataset", None, "given"),
        ("--dataset=wmt", "--dataset", "wmt", "treebank"),
        ("--dataset=files", "--train_source", "none", "given"),
        (
            "--dataset=files --train_source=no.en --train_target=no.de",
            *("--train_source", "no.en", "readable"),
        ),
        (
            "--dataset=files --train_source=a --train_target=b --test_source=c",
            *("--test_target", "none", "given"),
        ),
        ("--dataset=files --test_source=a --test_source=b", "--test_source", "2 times", "once"),
        ("--dataset=files --tree_words=tags", "--tree_words", "tags", "not be given"),
        ("--dataset=files --vocabulary=no.model", "--vocabulary", "no.model", "readable"),
        ("--dataset=files --weights=1,x", "--weights", "1,x", "numbers"),
        ("--dataset=files --length_limits=1.5,9", "--length_limits", "1.5,9", "whole"),
        ("--dataset=files --augment=upper", "--augment", "upper", "shares"),
        ("--dataset=files --augment=upper:0.1,upper:0.2", "--augment", "upper:0.1,upper", "once"),
        ("--dataset=files --parallel=en", "--parallel", "en", "each once"),
        ("--dataset=files --parallel=en:a,en:b", "--parallel", "en:a,en:b", "each once"),
        ("--dataset=files --augment=title:2", "--augment.title", "2", "at most 1"),
        ("--dataset=files --script_share=0.9", "--script_share", "0.9", "given with scripts"),
        (
            "--dataset=files --length_unit=characters",
            *("--length_unit", "characters", "length_limits or length_ratio"),
        ),
    ],
)
def test_wrong_flags_end_in_one_line(call_program, tmp_path, arguments, subject, received, about):
    typed = [f"--data_dir={tmp_path / 'data'}", *arguments.split()]
    done = call_program("prepare_data", *typed, cwd=tmp_path)
    assert done.code == 1 and not done.output
    check_line(done.errors, subject, received, about)
    assert not (tmp_path / "data").exists()


def test_the_default_vocabulary_size_is_no_exception(call_program, text):
    done = call_program("prepare_data", *words(dataset="files", **text))
    assert done.code == 1
    check_line(done.errors, "--vocab_size", "37000", "at most")


def test_options_of_beam_need_beam(call_program, text, tmp_path):
    arguments = words(dataset="files", pipeline_options="--runner=FlinkRunner", **text)
    done = call_program("prepare_data", *arguments)
    assert done.code == 1 and not (tmp_path / "data").exists()
    check_line(done.errors, "--pipeline_options", "--runner=Flink", "--runner=beam")


def test_beam_is_an_extra(call_program, text, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    monkeypatch.delitem(sys.modules, "pipelines.prepare.beam", raising=False)
    done = call_program("prepare_data", *words(dataset="files", runner="beam", **text))
    assert done.code == 1 and not (tmp_path / "data").exists()
    check_line(done.errors, "--runner", "beam", 'pip install "keras-transformer-nmt[beam]"')


def test_a_vocabulary_that_is_none(call_program, text, tmp_path):
    (tmp_path / "no.model").write_text("the\nof\n")
    arguments = words(dataset="files", vocabulary="no.model", **text)
    done = call_program("prepare_data", *arguments, cwd=tmp_path)
    assert done.code == 1
    check_line(done.errors, "no.model", "SentencePiece", "bpe")


def headings_of(text):
    """Flag -> its heading in the text of --help or --helpfull."""
    heading, found = None, {}
    for line in text.splitlines():
        if re.fullmatch(r"\S.*:", line):
            heading = line.removesuffix(":")
        elif flag := re.match(r"  --(?:\[no\])?(\w+):", line):
            found[flag[1]] = heading
    return found


def test_help_says_which_data_sets_have_a_flag(call_program):
    done = call_program("prepare_data", "--helpfull")
    assert done.code == 0
    headings = headings_of(done.output)
    expected = {
        "train_source": "dataset=files",
        "test_pairs": "dataset=files",
        "directions": "dataset=files",
        "source_language": "dataset=files or tfds:NAME",
        "target_language": "dataset=files or tfds:NAME",
        "tfds_data_dir": "dataset=tfds:NAME",
        "train_trees": "dataset=treebank",
        "tree_words": "dataset=treebank",
        "seed": "vocabulary and records",
    }
    assert {name: headings[name] for name in expected} == expected
    assert "pairs are dropped. (default: 256)" in done.output  # of --max_length


@pytest.mark.parametrize(
    ("typed", "heading"),
    [
        ([], "dataset=files"),
        (["--dataset", "treebank"], "dataset=treebank"),
        (["--dataset=tfds:a/b"], "dataset=tfds:NAME"),
    ],
)
def test_help_lists_the_flags_for_the_data_set(run_program, typed, heading):
    done = run_program("prepare_data", *typed, "--no_such_flag", "--help")
    assert done.code == 0
    shown = set(headings_of(done.output).values())
    others = {"dataset=files", "dataset=tfds:NAME", "dataset=treebank"} - {heading}
    assert heading in shown and not others & shown
    for of_text in ("dataset=files or tfds:NAME", "selection of training pairs"):
        assert (of_text in shown) == (heading != "dataset=treebank")
    assert "vocabulary and records" in shown
