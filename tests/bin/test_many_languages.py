"""One model of several directions, from files of text to translations and scores."""

import pytest

TEXTS = {"en": "the dog\na cat\n", "de": "der Hund\neine Katze\n", "cs": "pes\nkočka\n"}


@pytest.fixture(scope="module")
def folder(call_program, tmp_path_factory):
    """A folder with text, data and a model of random weights."""
    from tests.program_fixtures import make_model_dir

    folder = tmp_path_factory.mktemp("many")
    for language, text in TEXTS.items():
        (folder / f"a.{language}").write_text(text * 15, encoding="utf-8")
    files = ",".join(f"{language}:{folder}/a.{language}" for language in TEXTS)
    done = call_program(
        "prepare_data",
        "--dataset=files",
        f"--parallel={files}",
        f"--test_parallel={files}",
        "--directions=en-de,en-cs,cs-en",
        "--temperature=2",
        "--tokenizer=wordpiece",
        "--vocab_size=50",
        f"--data_dir={folder}/data",
    )
    assert done.code == 0, done.errors
    assert done.result["pairs"] == {"train": 90, "test": 90}
    make_model_dir(folder / "data", folder / "model", {10: (1, 1)})
    return folder


def test_files_of_several_directions(call_program, folder, tmp_path):
    sources = f"{folder}/a.en,{folder}/a.en"
    targets = f"{folder}/a.de,{folder}/a.cs"
    files = [f"--train_source={sources}", f"--train_target={targets}"]
    arguments = ["--dataset=files", "--vocab_size=290", f"--data_dir={tmp_path}/data", *files]
    wrong = call_program("prepare_data", *arguments, "--target_languages=de")
    (line,) = [line for line in wrong.errors.splitlines() if line.startswith("error: ")]
    assert wrong.code == 1 and line == (
        "error: --target_languages must have a language for each file of --train_target. "
        "Received: de for 2 files"
    )
    done = call_program("prepare_data", *arguments, "--target_languages=de,cs")
    assert done.code == 0 and done.result["pairs"] == {"train": 60}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--parallel=en"], "--parallel must be languages and their files, each once, as en:train"),
        (["--parallel=en:a.en,en:a.de"], "--parallel must be languages and their files, each once"),
        (["--parallel=en:a.en,de:none"], "--parallel must be a readable file. Received: none"),
        (["--directions=en-de"], "--train_source must be given with --dataset=files"),
        (
            ["--parallel=en:a.en,de:a.de", "--directions=en-fr"],
            "--directions must be SOURCE-TARGET of the languages en, de. Received: en-fr",
        ),
        (
            ["--parallel=en:a.en,de:a.de", "--source_language=en", "--target_language=de"],
            "--source_language must not be given with parallel. Received: en,de",
        ),
        (
            ["--parallel=en:a.en,de:a.de", "--weights=1,1", "--temperature=5"],
            "--weights must not be given with temperature, which sets them",
        ),
        (["--parallel=en:a.en,de:a.de", "--temperature=0"], "--temperature must be from 1 to 1000"),
    ],
)
def test_wrong_flags_end_in_one_line(call_program, folder, tmp_path, arguments, message):
    flags = ["--dataset=files", f"--data_dir={tmp_path / 'data'}", *arguments]
    done = call_program("prepare_data", *flags, cwd=folder)
    assert done.code == 1 and not done.output
    (line,) = [line for line in done.errors.splitlines() if line.startswith("error: ")]
    assert message in line


def test_translations_into_a_language(call_program, folder, tmp_path):
    arguments = [f"--model_dir={folder}/model", "--beam_size=1", "--one_sentence_per_line"]
    named = call_program("translate", *arguments, "--to=cs", stdin=b"the dog\n\n")
    coded = call_program("translate", *arguments, stdin=b">>cs<< the dog\n\n")
    assert named.code == coded.code == 0 and named.output == coded.output
    missing = call_program("translate", *arguments, stdin=b"the dog\n")
    assert missing.code == 1
    assert (
        "error: --to must be given for texts that begin with no code, one of de, cs, en. "
        'Received: "the dog"'
    ) in missing.errors
    other = call_program("translate", f"--model_dir={folder}/model", "--to=fr", stdin=b"the dog\n")
    assert "error: --to must be one of the model's target languages: de, cs, en. " in other.errors


def test_scores_of_each_direction(call_program, folder):
    arguments = [f"--model_dir={folder}/model", f"--data_dir={folder}/data"]
    done = call_program("evaluate", *arguments, "--limit=2", "--beam_size=1")
    assert done.code == 0, done.errors
    assert list(done.result["directions"]) == ["en-de", "en-cs", "cs-en"]
    assert done.result["sentences"] == 6
    table = [line.split("|")[1].strip() for line in done.errors.splitlines() if line[:2] == "| "]
    assert table == ["direction", "---------", "en-de", "en-cs", "cs-en", "mean"]
