import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from keras_transformer.kit.exchange import saved_model
from keras_transformer.use.store.card import CARD
from tests.small_text import write_small_text


def read_card(export):
    """The card of an export, without the sizes of its files and how long its scores took."""
    card = json.loads((Path(export) / CARD).read_text("utf-8"))
    return {name: value for name, value in card.items() if name not in ("files", "evaluation")}


@pytest.mark.slow  # trains, translates and exports
def test_it_does_what_the_commands_do_that_it_shows(call_program, tmp_path, monkeypatch):
    """In the paper's variant, which averages checkpoints, too; `make commands` runs the other."""
    import keras_transformer as kt

    write_small_text(tmp_path / "text", 60)
    flags = [f"--text_dir={tmp_path}/text", "--train_steps=2", f"--work_dir={tmp_path}/work"]
    done = call_program("quickstart", *flags, "--paper")
    assert done.code == 0, done.errors
    assert done.result["steps"] == 2
    shown = [line.removeprefix("$ ") for line in done.errors.splitlines() if line[:2] == "$ "]

    # One model, one answer.
    sentences, wanted = zip(*done.result["translations"].items(), strict=True)
    for path in (done.result["model_dir"], done.result["saved_model"]):
        answers = [best.text for best, *_ in kt.load(path).translate(sentences)]
        assert answers == list(wanted)

    # The export has graphs already, and tracing them takes long.
    monkeypatch.setattr(saved_model, "_graphs_named", lambda *_: {})
    card = read_card(done.result["saved_model"])
    results = {}
    for line in shown:
        program, *flags = shlex.split(line)
        if program == "sacrebleu":
            scored = subprocess.run(
                [sys.executable, "-m", "sacrebleu", *flags, "--score-only", "--width=4"],
                capture_output=True,
                text=True,
            )
            results["sacrebleu"] = float(scored.stdout)
            continue
        name = flags.pop(0).removeprefix("bin/").removesuffix(".py")
        again = call_program(name, *flags)
        assert again.code == 0, again.errors
        results[name] = again.result
    assert list(results) == [
        *("prepare_data", "train", "average_checkpoints", "evaluate", "translate"),
        *("sacrebleu", "export"),
    ]
    assert results["prepare_data"]["up_to_date"]
    assert results["train"]["step"] == 2  # of the same run, which had ended
    assert results["evaluate"]["averaged"] == 1
    for name in ("bleu", "perplexity"):
        assert results["evaluate"][name] == done.result[name]
    assert results["sacrebleu"] == done.result["bleu_compositional"]
    assert read_card(done.result["saved_model"]) == card

    letter = done.errors[done.errors.index("a document") :].splitlines()[1]
    _, _, *flags = shlex.split(letter)
    assert call_program("translate", *flags).code == 0
    assert (tmp_path / "work" / "letter.de.md").read_text("utf-8").startswith("# ")
