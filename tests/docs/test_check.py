"""docs/site/check.py on a small site, with each kind of error."""

import pytest

from docs.site import check

PAGES = {
    "index.html": "<a href=guide/#start>a</a><a href=https://example.org/>b</a><img src=a.png>",
    "guide/index.html": '<h1 id="start">Start</h1><link rel="stylesheet" href="../site.css">',
    "a.png": "",
    "site.css": "",
}


def errors_with(folder, **changed):
    for name, text in (PAGES | changed).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return check.errors(folder)


def test_a_whole_site_has_no_errors(tmp_path):
    assert errors_with(tmp_path) == []
    check.main(tmp_path)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('<a href="nowhere/">', "index.html links to nowhere/, which does not exist"),
        ('<img src="b.png">', "index.html links to b.png, which does not exist"),
        ('<a href="guide/#end">', "index.html links to guide/#end, where no such place is"),
        ('<script src="https://cdn.example/a.js">', "index.html loads https://cdn.example/a.js"),
        ('<link rel="stylesheet" href="//a.example/b">', "index.html loads //a.example/b"),
    ],
)
def test_errors_are_found(tmp_path, text, error):
    assert errors_with(tmp_path, **{"index.html": text}) == [error]
    with pytest.raises(SystemExit, match=f"error: {error.split()[0]}"):
        check.main(tmp_path)
