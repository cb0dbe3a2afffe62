"""Files that programs write for their users."""

import errno
import gzip
import os

import pytest

from keras_transformer.support.files.reading import opened
from keras_transformer.support.output_files import check_output, opened_output, write_lines
from tests.refusals import refused


def test_links_and_devices_stay_what_they_are(tmp_path):
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_lines(str(tmp_path / "link"), ["new"])
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new\n"
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    check_output(str(tmp_path / "pipe"))
    write_lines(str(tmp_path / "pipe"), ["through"])
    assert os.read(reader, 100) == b"through\n"
    os.close(reader)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link", "pipe"]


def test_write_lines_holds_a_line_a_text(any_folder):
    write_lines(str(any_folder / "out"), ["a\nb", "", "ü\r\n", "a\0b"])
    assert (any_folder / "out").read_bytes() == "a b\n\nü  \na b\n".encode()


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_a_name_of_a_compressed_file_makes_one(any_folder, ending):
    path = str(any_folder / "out") + ending
    check_output(path)
    for _ in range(2):
        with opened_output(path) as file:
            file.write(b"one\n" * 999)
            file.flush()
            file.write(b"two\n")
        with opened(path) as file:
            assert file.read() == b"one\n" * 999 + b"two\n"
    assert 0 < len((any_folder / f"out{ending}").read_bytes()) < 300


def test_equal_contents_are_equal_compressed_files(tmp_path):
    for name in ("a.gz", "b.gz"):
        write_lines(str(tmp_path / name), ["ein Text"])
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"ein Text\n"


def full(path):
    """The error of the system about a file for which there is no room, as a pattern."""
    return rf"\[Errno {errno.ENOSPC}\] .*: '{path}'$"


@pytest.mark.parametrize("use", ["write", "flush", "nothing"])
def test_errors_of_the_output_have_its_name(tmp_path, use):
    with pytest.raises(FileNotFoundError), opened_output(str(tmp_path / "out")) as file:
        file.write(b"a part")
        (tmp_path / "absent").read_bytes()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OSError, match=full("/dev/full")), opened_output("/dev/full") as file:
        file.write(b"x" * 1_000_000 if use == "write" else b"x")
        if use == "flush":
            file.flush()
    path = str(tmp_path / "absent/out")
    with pytest.raises(FileNotFoundError, match=path), opened_output(path):
        pass


def test_errors_name_what_the_caller_names(tmp_path):
    path = str(tmp_path / "absent" / "out")
    with refused("predictions", path):
        check_output(path, "predictions")
    with refused("output", tmp_path):
        check_output(str(tmp_path))


def test_links_that_lead_nowhere(tmp_path):
    (tmp_path / "dangling").symlink_to("absent/out")
    path = tmp_path / "dangling"
    with refused("page", path):
        check_output(str(path), "page")
    target = str(tmp_path / "absent" / "out")
    with pytest.raises(FileNotFoundError, match=target), opened_output(str(path)):
        pass
    (tmp_path / "new").symlink_to("out")  # to a file that is still to be written
    check_output(str(tmp_path / "new"))


def test_links_that_lead_to_each_other(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "file").touch()
    loop, file = str(tmp_path / "a"), str(tmp_path / "file")
    for use in (
        lambda: check_output(loop),
        lambda: check_output(file, inputs={"input": [loop]}),
        lambda: write_lines(loop, ["text"]),
    ):
        with refused(None, "links", loop):
            use()
    with refused(None, "links", f"{loop}/file"):
        write_lines(f"{loop}/file", ["text"])
    assert (tmp_path / "a").is_symlink()


def test_an_input_is_no_output(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text("text")
    (tmp_path / "link").symlink_to("a")
    inputs = {"input": [str(tmp_path / "b")], "terms": ["-", f"{tmp_path}/../{tmp_path.name}/a"]}
    for output in ("a", "link"):
        with refused("predictions", tmp_path / output, about="terms"):
            check_output(str(tmp_path / output), "predictions", inputs)
    check_output(str(tmp_path / "c"), inputs=inputs)
    check_output("/dev/null", inputs={"input": ["/dev/null"]})


def test_no_file_of_a_folder_that_is_read_is_replaced(tmp_path):
    (tmp_path / "model" / "checkpoints").mkdir(parents=True)
    (tmp_path / "model" / "config.json").touch()
    (tmp_path / "link").symlink_to(tmp_path / "model" / "config.json")
    read = {"model_dir": [str(tmp_path / "model")]}
    for path in ("model/config.json", "model/checkpoints/../config.json", "link"):
        with refused("output", path, about="model_dir"):
            check_output(str(tmp_path / path), "output", read)
    check_output(str(tmp_path / "model" / "new.de"), "output", read)
    check_output(str(tmp_path / "new.de"), "output", read)
