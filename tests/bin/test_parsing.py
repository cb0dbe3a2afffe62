"""A treebank through all programs: prepare, train, evaluate, translate."""

import json

import pytest

from keras_transformer.kit.parsing.trees import clean, parse_trees
from tests.refusals import check_line

NOUNS, VERBS = ("dog", "cat", "cell"), ("barks", "sleeps", "grows")
TREES = [
    f"( (S (NP-SBJ (DT the) (NN {noun})) (VP (VBZ {verb}) (NP (-NONE- *)))) )"
    for noun in NOUNS
    for verb in VERBS
] + [f"( (FRAG (NP (NN {noun}))) )" for noun in NOUNS]


@pytest.fixture(scope="module")
def trained(call_program, tmp_path_factory):
    """A data directory and a model that has learned its nine sentences by heart."""
    folder = tmp_path_factory.mktemp("parsing")
    (folder / "train.mrg").write_text("\n".join(TREES * 20))
    (folder / "test.mrg").write_text("\n".join(TREES))
    data, model = folder / "data", folder / "model"
    done = call_program(
        "prepare_data",
        *("--dataset=treebank", f"--train_trees={folder / 'train.mrg'}", "--tree_words=tags"),
        *(f"--validation_trees={folder / 'test.mrg'}", f"--test_trees={folder / 'test.mrg'}"),
        *(f"--data_dir={data}", "--vocab_size=310", "--max_length=40"),
    )
    assert done.code == 0, done.errors
    settings = ["num_layers=1", "d_model=32", "d_ff=64", "num_heads=2", "dropout=0", "norm=pre"]
    settings += ["warmup_steps=40", "label_smoothing=0", "attention_dropout=0"]
    settings += ["learning_rate_scale=0.3"]  # at 1, some runs diverge again before they end
    done = call_program(
        "train",
        *(f"--data_dir={data}", f"--model_dir={model}", "--preset=parsing_wsj"),
        *(f"--config={setting}" for setting in settings),
        *("--train_steps=200", "--tokens_per_batch=400", "--sample_sentences=3"),
    )
    assert done.code == 0, done.errors
    # A tree then has probability 0.9 or so: rounding cannot make another one the best.
    assert done.result["validation_perplexity"] < 1.02
    assert done.result["validation_f1"] == 100.0 and done.result["validation_repaired"] == 0.0
    return data, model


def test_evaluation_by_brackets_with_the_settings_of_the_paper(call_program, trained, tmp_path):
    data, model = trained
    output = tmp_path / "trees.txt"
    arguments = [f"--data_dir={data}", f"--model_dir={model}", f"--output={output}"]
    done = call_program("evaluate", *arguments)
    assert done.code == 0, done.errors
    for name, value in {
        **{"f1": 100.0, "complete_match": 100.0, "well_formed": 100.0, "tagging_accuracy": 100.0},
        **{"sentences": 12, "errors": 0, "skipped": 0, "repaired": 0},
        **{"beam_size": 21, "alpha": 0.3, "split": "test", "dataset": "treebank"},
    }.items():
        assert done.result[name] == value, name
    assert done.result["perplexity"] < 1.02 and "bleu" not in done.result
    assert output.read_text() == "".join(f"{clean(tree)}\n" for tree in parse_trees(TREES, "test"))
    assert json.loads((model / "evaluation-test.json").read_text())["f1"] == 100.0


def test_translation_gives_scored_trees_over_the_words_of_each_line(call_program, trained):
    _, model = trained
    text = "the cat barks\n\nthe (cat) sleeps" + " the" * 60 + "\n"
    arguments = [f"--model_dir={model}", "--n_best=4", "--scores", "--beam_size=5"]
    done = call_program("translate", *arguments, stdin=text.encode())
    assert done.code == 0, done.errors
    rows = [line.split("\t") for line in done.output.splitlines()]
    first, blank, last = ([row[1:] for row in rows if row[0] == number] for number in "123")
    assert first[0][1] == "(S (NP (DT the) (NN cat)) (VP (VBZ barks)))"
    # How many the five hypotheses make is the model's affair; tests/parsing has several.
    assert 1 <= len({tree for _, tree in first}) == len(first) <= 4
    assert float(first[0][0]) == max(float(score) for score, _ in first)
    assert blank == [["0.000000", ""]]
    for _, text in last:
        (tree,) = parse_trees([text], "output")
        assert tree.words() == ["the", "-LRB-cat-RRB-", "sleeps"] + ["the"] * 60
    report = json.loads(done.errors.splitlines()[-1])
    assert report["lines"] == 3 and report["repaired"] == 1 and report["truncated"] == 0
    assert sum(report["repairs"].values()) > 0


@pytest.mark.parametrize(
    ("program", "arguments", "received", "about"),
    [
        ("evaluate", ["--lowercase"], "True", "trees"),
        ("evaluate", ["--robustness"], "True", "trees"),
        ("translate", ["--n_best=22"], "22", "21"),
        ("translate", ["--language=en"], None, "parsing"),
    ],
)
def test_wrong_flags_end_in_one_line(call_program, trained, program, arguments, received, about):
    data, model = trained
    dirs = [f"--model_dir={model}"] + [f"--data_dir={data}"] * (program == "evaluate")
    done = call_program(program, *dirs, *arguments)
    assert done.code == 1 and not done.output
    check_line(done.errors, arguments[0].partition("=")[0], received, about)
