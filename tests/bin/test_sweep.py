import hashlib
import json

import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer

from keras_transformer.core.presets import preset
from keras_transformer.core.training.model_directory import ModelDescription, create_or_check
from keras_transformer.kit.paper.trained_rows import trained_row
from keras_transformer.support.errors import InputError
from keras_transformer.use.store.results import write_results
from tests.configurations import with_settings
from tests.program_fixtures import PAIRS
from tests.refusals import check_line, refused

SCORES = {"bleu": 10.0, "perplexity": 30.0, "step": 5}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A data directory with a validation split."""
    from pipelines.prepare.preparation import PreparationConfig, prepare
    from pipelines.sources.files import FileSource

    folder = tmp_path_factory.mktemp("sweep")
    for side, lines in zip(("en", "de"), zip(*PAIRS, strict=True), strict=True):
        (folder / f"text.{side}").write_text("".join(f"{line}\n" for line in lines * 4))
    files = ([str(folder / "text.en")], [str(folder / "text.de")])
    source = FileSource({"train": files, "validation": files})
    prepare(source, folder / "data", PreparationConfig(vocab_size=310, max_length=32, seed=1))
    return folder / "data"


@pytest.fixture
def sweep(load_program, data, tmp_path, monkeypatch):
    """Runs the sweep with programs that only pretend; gives its result and the calls they had."""

    def run(*arguments, fail=()):
        root = tmp_path / "root"
        module = load_program("sweep", f"--data_dir={data}", f"--model_dir={root}", *arguments)
        calls = []

        def pretend(log, name, *words):
            calls.append((log.stem, name, *words))
            if (log.stem, name) in fail:
                raise InputError(None, "must end well", "exit code 1: no room", f"bin/{name}.py")
            if name == "evaluate":
                write_results(root / log.stem, "validation", SCORES)
                return
            given = [word.partition("=")[::2] for word in words]
            settings = [value for flag, value in given if flag == "--config"]
            model, training = with_settings(*preset(log.stem, 310), settings)
            fingerprint = hashlib.sha256(b"v").hexdigest()
            description = ModelDescription(log.stem, model, training, "v.model", fingerprint, 32)
            (root / "v.model").write_text("v")
            create_or_check(root / log.stem, description, root)

        monkeypatch.setattr(module, "program", pretend)
        return module.main(), calls, root

    return run


def test_rows_are_trained_scored_and_tabled(sweep, data):
    result, calls, root = sweep(
        *("--rows=C1,D", "--divide_layers=2", "--divide_widths=8", "--train_steps=5"),
        *("--tokens_per_batch=300", "--config=warmup_steps=9", "--config=norm=pre"),
    )
    names = ["C1", "D1", "D2", "D3", "D4"]
    wanted = [(row, name) for row in names for name in ("train", "evaluate")]
    assert [call[:2] for call in calls] == wanted
    train, evaluate = calls[0], calls[1]
    assert train[2:] == (
        *(f"--data_dir={data}", f"--model_dir={root / 'C1'}", "--preset=C1"),
        *("--config=num_layers=1", "--config=d_model=64", "--config=d_ff=256", "--config=d_k=8"),
        *("--config=d_v=8", "--config=warmup_steps=9", "--config=norm=pre", "--train_steps=5"),
        *("--tokens_per_batch=300", "--checkpoint_minutes=2.0", "--keep_checkpoints=1"),
        *("--sample_sentences=0", "--seed=1"),
    )
    assert evaluate[4:] == ("--split=validation", "--beam_size=4")
    assert [row["row"] for row in result["rows"]] == names and result["failed"] == {}
    assert result["rows"][0] == trained_row(root / "C1")
    assert json.loads((root / "table.json").read_text()) == result["rows"]
    lines = (root / "table.md").read_text().splitlines()
    assert [line.split("|")[1].strip() for line in lines] == ["row", "---", *names]
    assert "|     5 |   30.00 |     10.0 |" in lines[2]
    shown = EventMultiplexer().AddRunsFromDirectory(str(root)).Reload()
    for name in names:
        (point,) = shown.Tensors(f"{name}/tensorboard/validation", "quality/bleu")
        assert (point.step, tf.make_ndarray(point.tensor_proto)) == (5, 10.0)


def test_finished_rows_are_left_alone(sweep):
    sweep("--rows=A1,A2", "--train_steps=5")
    result, calls, _ = sweep("--rows=A1,A2,A3", "--train_steps=5")
    assert {call[0] for call in calls} == {"A3"}
    assert len(result["rows"]) == 3
    _, calls, _ = sweep("--rows=A1", "--train_steps=6")  # more steps: it goes on
    assert [call[:2] for call in calls] == [("A1", "train"), ("A1", "evaluate")]


def test_a_failing_row_does_not_lose_the_others(sweep):
    broken_off = [("C1", "evaluate"), ("C3", "train")]
    result, _, root = sweep("--rows=C1,C2,C3", "--train_minutes=0.5", fail=broken_off)
    assert [row["row"] for row in result["rows"]] == ["C2"]
    assert result["failed"] == {
        row: f"bin/{name}.py must end well. Received: exit code 1: no room"
        for row, name in broken_off
    }
    assert len(json.loads((root / "table.json").read_text())) == 1
    result, calls, _ = sweep("--rows=C1,C2,C3", "--train_minutes=0.5")
    assert {call[0] for call in calls} == {"C1", "C3"}
    assert [row["row"] for row in result["rows"]] == ["C1", "C2", "C3"]
    assert "--train_minutes=0.5" in calls[0]


def test_no_row_left_is_an_error(sweep):
    with refused("rows", "no room"):
        sweep("--rows=E", fail=[("E", "train")])


def test_a_program_that_fails_is_told_by_its_last_line(load_program, tmp_path):
    program = load_program("sweep", "--data_dir=data", "--model_dir=root").program
    log = tmp_path / "C1.log"
    program(log, "paper_tables", "--table=3", "--json")
    assert '{"table3": ' in log.read_text()
    with refused(None, "exit code 1: error: --table", "bin/paper_tables.py"):
        program(log, "paper_tables", "--table=5")


@pytest.mark.slow
def test_a_row_for_real(call_program, data, tmp_path):
    done = call_program(
        *("sweep", f"--data_dir={data}", f"--model_dir={tmp_path}", "--rows=C1"),
        *(
            "--divide_layers=2",
            "--divide_widths=16",
            "--train_steps=2",
            "--tokens_per_batch=256",
            "--beam_size=1",
        ),
    )
    assert done.code == 0, done.errors
    (row,) = done.result["rows"]
    assert (row["row"], row["steps"], row["num_layers"], row["d_model"]) == ("C1", 2, 1, 32)
    assert row["perplexity"] > 1 and row["bleu"] >= 0
    assert row["perplexity"] == row["validation"]["perplexity"]
    assert "$ python bin/evaluate.py" in (tmp_path / "C1.log").read_text()


@pytest.mark.parametrize(
    ("arguments", "subject", "received", "about"),
    [
        (["--rows=C1,F"], "--rows", "'F'", "base, A1, A2"),
        (["--rows=A4", "--divide_widths=32"], "--divide_widths", "32", "d_k=16 of row A4"),
    ],
)
def test_bad_flags(call_program, data, tmp_path, arguments, subject, received, about):
    root = tmp_path / "root"
    done = call_program("sweep", f"--data_dir={data}", f"--model_dir={root}", *arguments)
    assert done.code == 1
    check_line(done.errors, subject, received, about)
    assert not root.exists()


@pytest.mark.parametrize("name", ["table.md", "table.json", "config.json", "metadata.json"])
def test_folders_of_others_are_left_alone(call_program, data, tmp_path, name):
    (tmp_path / name).write_text("mine")
    done = call_program("sweep", f"--data_dir={data}", f"--model_dir={tmp_path}", "--rows=C1")
    assert done.code == 1
    check_line(done.errors, "--model_dir", f"{tmp_path}, which holds {name}")
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_data_without_validation(call_program, prepared, tmp_path):
    done = call_program("sweep", f"--data_dir={prepared}", f"--model_dir={tmp_path}")
    assert done.code == 1
    check_line(done.errors, "--data_dir", prepared, "validation")
