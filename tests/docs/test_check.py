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
    ("text", "wrong"),
    [
        ('<a href="nowhere/">', "links to nowhere/"),
        ('<img src="b.png">', "links to b.png"),
        ('<a href="guide/#end">', "links to guide/#end"),
        (
            '<div><p>Of <math display="inline"></math></p><math display="inline"></math></div>',
            "has a paragraph that ends before a formula",
        ),
        ('<script src="https://cdn.example/a.js">', "loads https://cdn.example/a.js"),
        ('<link rel="stylesheet" href="//a.example/b">', "loads //a.example/b"),
    ],
)
def test_errors_are_found(tmp_path, text, wrong):
    (error,) = errors_with(tmp_path, **{"index.html": text})
    assert error.startswith(f"index.html {wrong}")
    with pytest.raises(SystemExit, match=r"error: index.html "):
        check.main(tmp_path)
