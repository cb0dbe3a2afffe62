"""One model of several directions, from files of text to translations and scores."""

import pytest

from tests.refusals import check_line

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
    assert wrong.code == 1
    check_line(wrong.errors, "--target_languages", "de for 2", "train_target")
    done = call_program("prepare_data", *arguments, "--target_languages=de,cs")
    assert done.code == 0 and done.result["pairs"] == {"train": 60}


def test_translations_into_a_language(call_program, folder, tmp_path):
    arguments = [f"--model_dir={folder}/model", "--beam_size=1", "--one_sentence_per_line"]
    named = call_program("translate", *arguments, "--to=cs", stdin=b"the dog\n\n")
    coded = call_program("translate", *arguments, stdin=b">>cs<< the dog\n\n")
    assert named.code == coded.code == 0 and named.output == coded.output
    missing = call_program("translate", *arguments, stdin=b"the dog\n")
    assert missing.code == 1
    check_line(missing.errors, "--to", '"the dog"', "de, cs, en")
    other = call_program("translate", f"--model_dir={folder}/model", "--to=fr", stdin=b"the dog\n")
    check_line(other.errors, "--to", "fr", "de, cs, en")


def test_scores_of_each_direction(call_program, folder):
    arguments = [f"--model_dir={folder}/model", f"--data_dir={folder}/data"]
    done = call_program("evaluate", *arguments, "--limit=2", "--beam_size=1")
    assert done.code == 0, done.errors
    assert list(done.result["directions"]) == ["en-de", "en-cs", "cs-en"]
    assert done.result["sentences"] == 6
    table = [line.split("|")[1].strip() for line in done.errors.splitlines() if line[:2] == "| "]
    assert table == ["direction", "---------", "en-de", "en-cs", "cs-en", "mean"]
