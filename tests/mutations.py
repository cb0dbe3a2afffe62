"""Random damage to files, reproducible from a seed, for tests of damaged files."""

import json


def json_mutations(content, generator):
    """Yields copies of JSON content with one change each, every time at a random place.

    Yields:
        (name of the change, content): a removed key, or a value of another type or size.
    """
    values = {
        "another type": "text",
        "null": None,
        "a huge number": 2**39,
        "a negative number": -1,
        "an empty list": [],
        "an empty object": {},
    }
    for name, value in values.items():
        changed, (within, key) = _drawn_place(content, generator)
        within[key] = value
        yield name, changed
    changed, (within, key) = _drawn_place(content, generator)
    if isinstance(within[key], int):
        within[key] += 1
        yield "a number that is possible", changed
    changed, (within, key) = _drawn_place(content, generator)
    del within[key]
    yield "a removed key", changed


def _drawn_place(content, generator):
    """Returns a copy of JSON content, and a random place in it: (object or list, key)."""
    copy = json.loads(json.dumps(content))
    places = list(_places(copy))
    return copy, places[generator.integers(len(places))]


def _places(content):
    for key, value in content.items() if isinstance(content, dict) else enumerate(content):
        yield content, key
        if isinstance(value, dict | list):
            yield from _places(value)


def byte_mutations(content, generator):
    """Yields copies of bytes with one change each: (name of the change, bytes)."""
    yield "empty", b""
    if content:
        place = int(generator.integers(len(content)))
        flipped = bytearray(content)
        flipped[place] ^= 1 << int(generator.integers(8))
        yield "a flipped bit", bytes(flipped)
        yield "truncated", content[:place]
    yield "longer", content + b"{}"


def mutations(content, is_json, generator):
    """Yields all changes of a file: (name of the change, bytes)."""
    yield from byte_mutations(content, generator)
    if is_json:
        for name, changed in json_mutations(json.loads(content), generator):
            yield name, json.dumps(changed).encode()
