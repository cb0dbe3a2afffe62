"""Files and folders that are written whole or not at all."""

import os
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from keras_transformer.support.files.replacing import (
    put_back,
    replaced_folder,
    replacing,
    replacing_folder,
    write_file,
)

ROOT = Path(__file__).resolve().parents[3]


def names(folder):
    return sorted(path.name for path in folder.glob("*"))


def test_a_file_is_replaced_when_all_is_written(any_folder):
    path = any_folder / "file"
    path.write_bytes(b"old")
    with replacing(path) as file, replacing(path) as other:  # two at once do not meet
        file.write(b"new")
        other.write(b"other")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert names(any_folder) == ["file"]
    write_file(any_folder / "text", "ü\n")
    assert (any_folder / "text").read_bytes() == b"\xc3\xbc\n"


def test_a_file_stays_as_it_was_after_an_error(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), replacing(path) as file:
        file.write(b"new")
        raise ZeroDivisionError
    assert path.read_bytes() == b"old" and names(tmp_path) == ["file"]
    with pytest.raises(OSError, match="No such file"), replacing(tmp_path / "none" / "file"):
        pass


def test_links_stay(tmp_path):
    (tmp_path / "link").symlink_to("target")
    write_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "target").read_bytes() == b"new"


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mode", [0o600, 0o666, 0o200])
def test_a_new_file_has_the_permissions_of_the_old_one(tmp_path, mode):
    path = tmp_path / "file"
    path.touch()
    path.chmod(mode)
    with replacing(path) as file:
        (temporary,) = set(tmp_path.iterdir()) - {path}
        assert mode_of(temporary) & 0o77 & ~mode == 0  # nobody else may read what is written
        file.write(b"new")
    assert mode_of(path) == mode
    path.chmod(0o600)
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("mode", [0o700, 0o775])
def test_a_new_folder_has_the_permissions_of_the_old_one(tmp_path, mode):
    target = tmp_path / "export"
    target.mkdir()
    target.chmod(mode)
    with replacing_folder(target, "a") as folder:
        (folder / "a").touch()
    assert mode_of(target) == mode and names(target) == ["a"]


def test_new_files_and_folders_have_the_permissions_of_the_umask(tmp_path):
    old = os.umask(0o027)
    try:
        write_file(tmp_path / "file", b"")
        with replacing_folder(tmp_path / "export", "a"):
            pass
    finally:
        os.umask(old)
    assert (mode_of(tmp_path / "file"), mode_of(tmp_path / "export")) == (0o640, 0o750)


def test_a_file_without_room_is_named(tmp_path):
    (tmp_path / "link").symlink_to("/dev/full")
    for path in ("/dev/full", tmp_path / "link"):
        with pytest.raises(OSError, match=f"No space left on device: '{path}'$"):
            write_file(path, b"x" * 100_000)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OSError, match=f"File too large: '{tmp_path / 'file'}'$"):
            write_file(tmp_path / "file", b"x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert names(tmp_path) == ["link"]


def test_a_folder_is_replaced_when_all_is_written(any_folder):
    target = any_folder / "of" / "export"
    for content in ("1", "2"):
        with replacing_folder(target, "a") as folder:
            (folder / content).write_text(content)
            assert content == "1" or names(target) == ["1"]
        assert names(target) == [content] and names(target.parent) == ["export"]
    with pytest.raises(ZeroDivisionError), replacing_folder(target, "a") as folder:
        (folder / "3").write_text("3")
        raise ZeroDivisionError
    assert names(target) == ["2"] and names(target.parent) == ["export"]


def test_a_folder_comes_back_where_the_last_step_fails(tmp_path, monkeypatch):
    target = tmp_path / "export"
    target.mkdir()
    (target / "old").write_text("")
    rename = Path.rename

    def fail_for_the_new_one(path, new):
        if path.suffix == ".tmp":
            raise PermissionError
        return rename(path, new)

    monkeypatch.setattr(Path, "rename", fail_for_the_new_one)
    with pytest.raises(PermissionError), replacing_folder(target, "a") as folder:
        (folder / "new").write_text("")
    assert names(target) == ["old"] and names(tmp_path) == ["export"]


# Replaces a folder, and is killed before the n-th of its calls that change something.
KILLED = """
import os, shutil, signal, sys
from keras_transformer.support.files import replacing as files
path, last, calls = sys.argv[1], int(sys.argv[2]), []

def dying(function):
    def call(*arguments, **options):
        calls.append(None)
        if len(calls) == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **options)
    return call

os.mkdir, os.rename, shutil.rmtree = map(dying, (os.mkdir, os.rename, shutil.rmtree))
with files.replacing_folder(path, "whole") as folder:
    (folder / "whole").write_text("new")
"""


def is_whole(folder):
    return names(folder) == ["whole"]


def test_a_folder_outlives_a_kill_at_any_point(tmp_path):
    target = tmp_path / "export"
    target.mkdir()
    (target / "whole").write_text("old")
    codes = []
    while 0 not in codes:
        arguments = [str(target), str(len(codes) + 1)]
        done = subprocess.run([sys.executable, "-c", KILLED, *arguments], cwd=ROOT, check=False)
        codes.append(done.returncode)
        assert is_whole(target) or is_whole(replaced_folder(target))
        put_back(target)
        assert is_whole(target) and (target / "whole").read_text() in ("old", "new")
        (target / "whole").write_text("old")
    assert set(codes[:-1]) == {-signal.SIGKILL} and len(codes) >= 4
    assert names(tmp_path) == ["export"]  # nothing is left of all the attempts


def test_what_running_programs_write_stays(tmp_path):
    (tmp_path / ".file.0123abcd.tmp").write_text("of a killed program")
    (tmp_path / ".export.0123abcd.tmp").mkdir()
    (tmp_path / ".export.0123abcd.tmp" / "part").write_text("of a killed program")
    mine = [".file.mine.tmp", ".file.0123abcd.tmp.old", ".other.0123abcd.tmp", "file.0123abcd.tmp"]
    for name in mine:
        (tmp_path / name).write_text("mine")
    with replacing(tmp_path / "file") as running, replacing_folder(tmp_path / "export", "a"):
        running.write(b"running")
        write_file(tmp_path / "file", b"other")
        with replacing_folder(tmp_path / "export", "a") as folder:
            (folder / "other").write_text("")
        temporary = set(names(tmp_path)) - {*mine, "file", "export"}
        assert {name.split(".")[1] for name in temporary} == {"file", "export"}
        assert len(temporary) == 2 and not any("0123abcd" in name for name in temporary)
    assert (tmp_path / "file").read_bytes() == b"running"
    assert names(tmp_path) == sorted([*mine, "file", "export"])


def test_a_pipe_is_written_to_and_stays(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_file(pipe, "text")
    assert os.read(reader, 10) == b"text" and pipe.is_fifo()
    os.close(reader)
    reader, writer = os.pipe()
    write_file(f"/dev/fd/{writer}", "text")  # as /dev/stdout
    assert os.read(reader, 10) == b"text"
    os.close(reader)
    os.close(writer)
