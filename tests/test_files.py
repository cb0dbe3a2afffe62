import gzip
import json
import os
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from keras_transformer import files
from keras_transformer.errors import InputError
from keras_transformer.files import (
    locked,
    put_back,
    read_json,
    replaced_folder,
    replacing,
    replacing_folder,
    text_lines,
    to_path,
    write_file,
    write_json,
)

ROOT = Path(__file__).resolve().parents[1]


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


def test_links_and_permissions_are_the_usual_ones(tmp_path):
    (tmp_path / "plain").write_bytes(b"")
    (tmp_path / "link").symlink_to("target")
    write_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "target").read_bytes() == b"new"
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "target")}
    assert len(modes) == 1  # not those of private temporary files


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o666, 0o444, 0o200])
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


def test_a_temporary_file_that_another_program_removes_is_made_again(tmp_path, monkeypatch):
    """Between making and locking it, others take it for that of a killed program."""
    opened, removed = os.open, []

    def remove_first(path, *arguments, **options):
        if str(path).endswith(".tmp") and not removed and os.path.exists(path):
            removed.append(path)
            os.remove(path)
        return opened(path, *arguments, **options)

    monkeypatch.setattr(os, "open", remove_first)
    write_file(tmp_path / "file", b"new")
    assert len(removed) == 1 and (tmp_path / "file").read_bytes() == b"new"


def test_a_temporary_name_that_is_taken_is_not_used(tmp_path, monkeypatch):
    tokens = iter(["0" * 8, "0" * 8, "1" * 8])
    monkeypatch.setattr(files.secrets, "token_hex", lambda _: next(tokens))
    with replacing(tmp_path / "file") as file, replacing(tmp_path / "file") as other:
        file.write(b"file")
        other.write(b"other")
    assert (tmp_path / "file").read_bytes() == b"file"


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

    monkeypatch.setattr(files, "_exchange", lambda *_: False)
    monkeypatch.setattr(Path, "rename", fail_for_the_new_one)
    with pytest.raises(PermissionError), replacing_folder(target, "a") as folder:
        (folder / "new").write_text("")
    assert names(target) == ["old"] and names(tmp_path) == ["export"]


# Replaces a folder, and is killed before the n-th of its calls that change something.
KILLED = """
import os, shutil, signal, sys
from keras_transformer import files
path, last, exchanges, calls = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "True", []

def dying(function):
    def call(*arguments, **options):
        calls.append(None)
        if len(calls) == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **options)
    return call

files._exchange = dying(files._exchange) if exchanges else lambda *_: False
os.mkdir, os.rename, shutil.rmtree = map(dying, (os.mkdir, os.rename, shutil.rmtree))
with files.replacing_folder(path, "whole") as folder:
    (folder / "whole").write_text("new")
"""


def is_whole(folder):
    return names(folder) == ["whole"]


@pytest.mark.parametrize("exchanges", [True, False])
def test_a_folder_outlives_a_kill_at_any_point(tmp_path, exchanges):
    target = tmp_path / "export"
    target.mkdir()
    (target / "whole").write_text("old")
    codes = []
    while 0 not in codes:
        arguments = [str(target), str(len(codes) + 1), str(exchanges)]
        done = subprocess.run([sys.executable, "-c", KILLED, *arguments], cwd=ROOT, check=False)
        codes.append(done.returncode)
        if exchanges:
            assert is_whole(target)
        else:  # the old one may wait under another name
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


def test_json_comes_back(any_folder):
    content = {"name": "ü", "list": [1, 2.5, None, True], "inner": {}}
    write_json(any_folder / "file", content)
    assert read_json(any_folder / "file") == content
    assert "ü" in (any_folder / "file").read_text(encoding="utf-8")
    with pytest.raises(InputError, match=r"none must be readable JSON. Received: .*No such file"):
        read_json(any_folder / "none")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", r"file must be readable JSON. Received: Expecting"),
        (b'"\xff"', r"file must be readable JSON. Received: .*0xff"),
        (b"[" * 100_000, r"file must be readable JSON. Received: "),
        (b"[" * 51 + b"]" * 51, r"file must be readable JSON. Received: more than 50 levels"),
        (b'{"a": "\\ud800"}', r"file must be readable JSON. Received: .*surrogates not allowed"),
        (b"[1, 2]", r"file: its content must be of type dict. Received: \[1, 2\]$"),
        (
            json.dumps("x" * 100).encode(),
            r'file: its content must be of type dict. Received: "x{59}\.\.\.$',
        ),
    ],
)
def test_other_content_is_named(tmp_path, content, message):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_json(tmp_path / "file")
    with pytest.raises(InputError, match="must be readable JSON"):
        read_json(tmp_path)


def test_lines_of_text():
    file = [b"\xef\xbb\xbfa \r\n", b"\xe2\x80\xa8b\rc\x0c\n", b"\n", b"\xef\xbb\xbfd"]
    assert list(text_lines(file, "name")) == ["a ", "\u2028b\rc\x0c", "", "\ufeffd"]
    lines = text_lines([b"a\n", b"b\xffc\n"], "name")
    assert next(lines) == "a"
    with pytest.raises(InputError, match=r"^name:2 must be UTF-8. .* byte 0xff at column 2$"):
        next(lines)


# Takes the lock, prints a line, and waits for its input to end.
HOLDER = """
import sys
from keras_transformer.files import locked
with locked(sys.argv[1], "dir"):
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_second_process_is_refused_until_the_first_has_ended(tmp_path):
    path = tmp_path / "new" / "lock"
    command = [sys.executable, "-c", HOLDER, str(path)]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "locked\n"
        message = (
            r"^dir must not be in use by another process. Received: .*new, locked by "
            rf"process {holder.pid} on .*new/lock\)$"
        )
        for _ in range(2):  # the note about the holder stays
            with pytest.raises(InputError, match=message), locked(path, "dir"):
                pass
    finally:
        holder.kill()
        holder.communicate()
    with locked(path, "dir"):  # the file is still there, the lock is not
        assert f"process {os.getpid()} on " in path.read_text()
    with locked(path, "dir"):
        pass


def test_a_folder_that_cannot_be_locked(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    message = r"dir must be a directory that can be written to. Received: .*file \(.*exists"
    with pytest.raises(InputError, match=message), locked(tmp_path / "file" / "lock", "dir"):
        pass


NO_LOCK = "cannot be locked ({}): use it by one process at a time"


def test_a_file_system_without_locks_is_used_with_a_warning(tmp_path, monkeypatch, caplog):
    import fcntl

    def no_locks(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    for _ in range(2):  # nothing is left locked by the first
        with locked(tmp_path / "lock", "dir"):
            (record,) = caplog.records
        no_lock = NO_LOCK.format("[Errno 37] No locks available")
        assert record.getMessage() == f"{tmp_path} {no_lock}"
        caplog.clear()


def test_a_remote_folder_is_used_with_a_warning(tmp_path, caplog):
    folder = to_path(f"ram://{tmp_path.name}-lock")
    with locked(folder / "lock", "dir"), locked(folder / "lock", "dir"):
        messages = [record.getMessage() for record in caplog.records]
    assert messages == 2 * [f"{folder} {NO_LOCK.format('it is remote')}"]


@pytest.mark.parametrize("path", ["none://bucket/folder", "none://bucket/folder/"])
def test_a_file_system_that_there_is_not_is_named(path):
    with pytest.raises(OSError, match="File system scheme 'none' not implemented"):
        to_path(path).exists()
    message = r"^dir must be a directory that .*none://bucket/folder \(.*'none' not implemented"
    with pytest.raises(InputError, match=message), locked(f"{path}/lock", "dir"):
        pass
    with pytest.raises(InputError, match=r"must be readable JSON. .*'none' not implemented"):
        read_json(path)


def test_paths_are_local_unless_they_name_a_file_system():
    for path in ("a/b", "/a:/b", "c:/d", "x:y//z"):
        assert to_path(path) == Path(path)
    assert to_path("file:///a/b") == Path("/a/b")
    remote = to_path("gs://bucket/a.b")
    assert (str(remote), str(remote / "c"), remote.suffix) == (
        *("gs://bucket/a.b", "gs://bucket/a.b/c", ".b"),
    )
    assert str(remote.parent) == "gs://bucket" and to_path(remote) == remote


def test_compressed_files_are_read_as_they_come(any_folder):
    (any_folder / "plain").write_bytes(b"one\ntwo")
    (any_folder / "packed.gz").write_bytes(gzip.compress(b"one\ntwo"))
    for name in ("plain", "packed.gz"):
        with files.opened(any_folder / name) as file:
            assert list(text_lines(file, name)) == ["one", "two"]
    with pytest.raises(FileNotFoundError), files.opened(any_folder / "none") as file:
        file.read()


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


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/full", "/dev/urandom"])
def test_what_has_no_end_is_not_read(device, tmp_path):
    (tmp_path / "link").symlink_to(device)
    for path in (device, tmp_path / "link"):
        message = rf"^{path} must be a file, a pipe or a terminal. Received: {path}, a device$"
        with pytest.raises(InputError, match=message):
            read_json(path)
        with pytest.raises(InputError, match=message), files.opened(path):
            pass
    with pytest.raises(InputError, match=r"^text must be a file, a pipe or a terminal"):
        files.require_end(device, "text")


def test_what_has_an_end_is_read(tmp_path):
    leader, terminal = os.openpty()
    os.mkfifo(tmp_path / "pipe")
    for path in (os.ttyname(terminal), "/dev/null", tmp_path / "pipe", tmp_path, "ram://none"):
        files.require_end(path)
    with files.opened("/dev/null") as file:
        assert file.read() == b""
    os.close(leader)
    os.close(terminal)
