import dataclasses
import hashlib
import shutil

import pytest

from pipelines import evaluation
from pipelines.batches.data_set import DataSet
from pipelines.prepare.metadata import read_metadata, write_metadata
from tests.refusals import check_line


@pytest.fixture(scope="module")
def evaluated(call_program, prepared, untrained, tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluated")
    output = folder / "translations.txt"
    model_dir = shutil.copytree(untrained, folder / "model")  # scores are written to it
    arguments = [f"--model_dir={model_dir}", f"--data_dir={prepared}", f"--output={output}"]
    return call_program("evaluate", *arguments, "--beam_size=2"), output


def test_result(evaluated, prepared):
    done, output = evaluated
    assert done.code == 0
    result = done.result
    assert result["sentences"] == 5
    assert result["checkpoint"] == "step-00000020"
    assert result["step"] == 20
    assert 0 <= result["bleu"] < 100
    assert 0 <= result["chrf"] < 100
    assert "|tok:13a|" in result["signature"]
    assert result["seconds"] > 0
    assert result["truncated"] == 1
    translations = output.read_text(encoding="utf-8").split("\n")
    assert len(translations) == 5 + 1
    assert translations[3] == ""

    from keras_transformer.use.evaluate.translation import translation_scores

    wanted = translation_scores(translations[:5], DataSet.open(prepared).text("test")[1])
    assert {name: result[name] for name in wanted} == wanted


def test_perplexity_is_of_the_records(evaluated, prepared, untrained):
    from keras_transformer.core.model.transformer import teacher_forcing
    from keras_transformer.core.training.checkpoint_weights import restore_model
    from keras_transformer.core.training.metrics import MaskedPerplexity

    done, _ = evaluated
    model, _ = restore_model(untrained)
    perplexity = MaskedPerplexity()
    for source, target in DataSet.open(prepared).evaluation_batches("test", 4096):
        inputs, labels = teacher_forcing(source, target)
        perplexity.update_state(labels, model(inputs))
    assert done.result["tokens"] == int(perplexity.count)
    assert done.result["perplexity"] == pytest.approx(float(perplexity.result()), rel=1e-4)


def test_robustness_is_shown_as_a_table(call_program, prepared, untrained):
    arguments = [f"--model_dir={untrained}", f"--data_dir={prepared}", "--beam_size=1"]
    done = call_program("evaluate", *arguments, "--limit=2", "--robustness")
    assert done.code == 0
    rows = [line.split("|")[1].strip() for line in done.errors.splitlines() if line[:2] == "| "]
    changes = ["in capitals", "in title case", "with typos", "without the last full stop"]
    assert rows == ["text", "-" * len(changes[-1]), "as it is", *changes]
    assert set(done.result["robustness"]["typos"]) == {"bleu", "chrf"}


@pytest.mark.slow  # searches once for each alpha; the choice has tests of its own
def test_alpha_is_chosen_and_remembered(call_program, prepared, untrained, tmp_path, monkeypatch):
    import keras_transformer as kt
    from keras_transformer.use.evaluate import length_penalty

    monkeypatch.setattr(length_penalty, "ALPHAS", (0.0, 1.5))
    monkeypatch.setattr(evaluation, "CHOOSING_SPLIT", "test")  # this data has no other
    # An untrained model has no score to speak of: here, the second alpha has the better one.
    scores = iter([{"bleu": 1.0}, {"bleu": 2.0}])
    monkeypatch.setattr(length_penalty, "translation_scores", lambda *arguments: next(scores))
    model_dir = shutil.copytree(untrained, tmp_path / "model")
    arguments = [f"--model_dir={model_dir}", f"--data_dir={prepared}", "--beam_size=2"]
    done = call_program("evaluate", *arguments, "--choose_alpha")
    assert done.code == 0, done.errors
    chosen = {"alpha": 1.5, "beam_size": 2, "bleu": 2.0, "split": "test"}
    assert chosen.items() <= done.result["chosen"].items()
    assert done.result["chosen"]["bleu_by_alpha"] == {"0.0": 1.0, "1.5": 2.0}
    assert done.result["alpha"] == 1.5

    config = kt.load(model_dir).config
    assert (config.alpha, config.beam_size) == (1.5, 2)
    assert kt.load(model_dir, alpha=0.1).config.alpha == 0.1


def test_alpha_is_chosen_or_given(call_program, prepared, untrained):
    arguments = [f"--model_dir={untrained}", f"--data_dir={prepared}", "--choose_alpha"]
    done = call_program("evaluate", *arguments, "--alpha=1")
    assert done.code == 1
    check_line(done.errors, "--alpha", "1.0", "choose_alpha")


def test_a_gpu_that_is_not_there(call_program, prepared, untrained):
    arguments = [f"--model_dir={untrained}", f"--data_dir={prepared}", "--device=cuda"]
    done = call_program("evaluate", *arguments)
    assert done.code == 1 and done.output == ""
    check_line(done.errors, "--device", "no GPU", "cuda")


def test_data_of_another_vocabulary(call_program, prepared, untrained, tmp_path):
    other = shutil.copytree(prepared, tmp_path / "other")
    metadata = read_metadata(prepared)
    (other / metadata.vocabulary).write_bytes(b"another")
    fingerprint = hashlib.sha256(b"another").hexdigest()
    write_metadata(other, dataclasses.replace(metadata, fingerprint=fingerprint))
    done = call_program("evaluate", f"--model_dir={untrained}", f"--data_dir={other}")
    assert done.code == 1
    check_line(done.errors, "--data_dir", other, "vocabulary")


def test_the_data_is_no_output(call_program, prepared, untrained):
    text = prepared / "test.source.txt"
    before = text.read_bytes()
    arguments = [f"--model_dir={untrained}", f"--data_dir={prepared}", f"--output={text}"]
    done = call_program("evaluate", *arguments)
    assert done.code == 1 and text.read_bytes() == before
    check_line(done.errors, "--output", text, "data_dir")
