import io
import sys

import pytest

from keras_transformer.support import progress


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self):
        return True


@pytest.fixture
def shown(monkeypatch):
    """Returns what a bar over ten items shows on a stream, with a clock of our own."""

    def run(stream, seconds, **options):
        clock = iter(range(0, 10_000, seconds))
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setattr("tqdm.std.time", lambda: next(clock))
        with progress.progress_bar(total=10, desc="reading", **options) as bar:
            for _ in range(10):
                bar.update()
        return stream.getvalue()

    return run


def test_a_terminal_redraws_one_line(shown):
    text = shown(Screen(), 1)
    assert text.count("\n") == 1 and text.count("\r") > 5 and "|####" in text


def test_a_file_has_one_line_a_minute_at_most(shown):
    lines = shown(io.StringIO(), 20).splitlines()
    assert 2 <= len(lines) <= 5 and len(lines) < 10
    assert lines[-1].startswith("reading: 100% 10/10 [") and "\r" not in "".join(lines)


def test_short_work_shows_nothing_in_a_file(shown):
    assert shown(io.StringIO(), 1) == ""


def test_a_format_of_its_own_loses_its_picture_in_a_file(shown):
    text = shown(io.StringIO(), 20, bar_format="{desc}" + progress.PICTURE + " {n}")
    assert text.splitlines()[-1] == "reading, 10"


def test_lines_of_the_log_are_above_the_bar(monkeypatch):
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    with progress.progress_bar(total=2, desc="reading") as bar:
        bar.update()
        progress.AboveBars().write("a line\n")
    last = [row.rpartition("\r")[2] for row in screen.getvalue().split("\n")]
    assert last[0] == "a line" and last[1].startswith("reading: ")
