"""What tests of preparation compare, and how they interrupt it."""


def contents(folder):
    """The files of a data directory: name -> bytes."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def interrupt(monkeypatch, target, name, call):
    """Lets a method fail at its n-th call; returns the arguments of those before."""
    method, calls = getattr(target, name), []

    def interrupted(*arguments, **options):
        if len(calls) == call:
            raise OSError("disk full")
        calls.append(arguments)
        return method(*arguments, **options)

    monkeypatch.setattr(target, name, interrupted)
    return calls
