import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from keras_transformer.use.store.card import CARD
from tests.small_text import write_small_text


def run_quickstart(call_program, folder, *flags):
    """The result of a short run in `folder`, and the commands that it shows."""
    write_small_text(folder / "text", 60)
    arguments = [f"--text_dir={folder}/text", "--train_steps=2", f"--work_dir={folder}/work"]
    done = call_program("quickstart", *arguments, *flags)
    assert done.code == 0, done.errors
    assert done.result["steps"] == 2
    shown = [line.removeprefix("$ ") for line in done.errors.splitlines() if line[:2] == "$ "]
    return done, shown


def read_card(export):
    """The card of an export, without the sizes of its files and how long its scores took."""
    card = json.loads((Path(export) / CARD).read_text("utf-8"))
    return {name: value for name, value in card.items() if name not in ("files", "evaluation")}


@pytest.fixture
def no_graphs(monkeypatch):
    """Returns a function: from then on, exports have no graphs, whose tracing takes long."""
    from keras_transformer.kit.exchange import saved_model

    return lambda: monkeypatch.setattr(saved_model, "_graphs_named", lambda *_: {})


@pytest.mark.slow  # trains and translates
def test_the_paper_s_variant_averages_and_scores_the_average(call_program, tmp_path, no_graphs):
    no_graphs()
    done, shown = run_quickstart(call_program, tmp_path, "--paper")
    _, _, averaging, evaluation, *_ = map(shlex.split, shown)
    assert "average_checkpoints" in averaging[1] and "evaluate" in evaluation[1]
    again = call_program("evaluate", *evaluation[2:])
    assert again.code == 0, again.errors
    assert again.result["averaged"] == 1
    assert again.result["perplexity"] == done.result["perplexity"]


@pytest.mark.slow  # trains, translates and exports
def test_it_does_what_the_commands_do_that_it_shows(call_program, tmp_path, no_graphs):
    import keras_transformer as kt

    done, shown = run_quickstart(call_program, tmp_path)

    # One model, one answer.
    sentences, wanted = zip(*done.result["translations"].items(), strict=True)
    for path in (done.result["model_dir"], done.result["saved_model"]):
        answers = [best.text for best, *_ in kt.load(path).translate(sentences)]
        assert answers == list(wanted)

    no_graphs()
    card = read_card(done.result["saved_model"])
    results = {}
    for number, line in enumerate(shown):
        if line.startswith("sacrebleu"):
            _, *flags = shlex.split(line)
            scored = subprocess.run(
                [sys.executable, "-m", "sacrebleu", *flags, "--score-only", "--width=4"],
                capture_output=True,
                text=True,
            )
            results[number, "sacrebleu"] = {"bleu": float(scored.stdout)}
            continue
        _, program, *flags = shlex.split(line)
        name = program.removeprefix("bin/").removesuffix(".py")
        again = call_program(name, *flags)
        assert again.code == 0, again.errors
        results[number, name] = again.result
    names = [name for _, name in results]
    assert names == ["prepare_data", "train", "evaluate", "translate", "sacrebleu", "export"]
    assert results[0, "prepare_data"]["up_to_date"]
    assert results[1, "train"]["step"] == 2  # of the same run, which had ended
    scored = [results[2, "evaluate"]["bleu"], results[4, "sacrebleu"]["bleu"]]
    assert scored == [done.result["bleu"], done.result["bleu_compositional"]]
    assert read_card(done.result["saved_model"]) == card

    letter = done.errors[done.errors.index("a document") :].splitlines()[1]
    _, _, *flags = shlex.split(letter)
    assert call_program("translate", *flags).code == 0
    assert (tmp_path / "work" / "letter.de.md").read_text("utf-8").startswith("# ")
