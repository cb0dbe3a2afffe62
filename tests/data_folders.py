"""Compares and interrupts preparations, for their tests."""

from pipelines.prepare import preparation


def contents(folder):
    """Reads the files of a data directory: name -> bytes."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def interrupt(monkeypatch, target, name, call):
    """Makes a method fail at call number `call`, from 0; returns the earlier calls' arguments."""
    method, calls = getattr(target, name), []

    def interrupted(*arguments, **options):
        if len(calls) == call:
            raise OSError("disk full")
        calls.append(arguments)
        return method(*arguments, **options)

    monkeypatch.setattr(target, name, interrupted)
    return calls


def kill(monkeypatch, target, name, call):
    """Like `interrupt`, but the preparation leaves its work folder, as a killed one does."""
    monkeypatch.setattr(preparation, "remove_folder", lambda folder: None)
    return interrupt(monkeypatch, target, name, call)
