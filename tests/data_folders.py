"""Compares and interrupts preparations, for their tests."""


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
