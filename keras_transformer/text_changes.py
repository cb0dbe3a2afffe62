"""Changes of text as users write it: in capitals, as a title, with typos, without its full stop.

Training data are augmented with such text, and a model is evaluated on it.
"""

import random
import re
from collections.abc import Sequence
from typing import TypeVar

# A letter that begins a word. "don't" and "3rd" have no second word in them; an accent may be a
# character of its own, after its letter.
_FIRST_LETTER = re.compile(r"(?<![\w\u0300-\u036f])(?<![\w\u0300-\u036f]['’])[^\W\d_]")
# The last full stop, of an ordinary sentence or of a tokenized one; an ellipsis is none.
_FINAL_STOP = re.compile(r"(?<=[^.\s])\s*[.。．｡।۔]\s*$")
# A word that is long enough to be recognised with a typo.
_LONG_WORD = re.compile(r"[^\W\d_]{3,}")
_WORDS_PER_TYPO = 7
_KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_Item = TypeVar("_Item")


def _neighbours() -> dict[str, str]:
    """Each letter of the keyboard -> the letters on the keys around it."""
    places = {}
    for row, letters in enumerate(_KEYBOARD):
        for column, letter in enumerate(letters):
            places[letter] = (row, column)
    neighbours = {}
    for letter, (row, column) in places.items():
        # A row is half a key to the right of the one above it.
        around = [
            (row, column - 1),
            (row, column + 1),
            (row - 1, column),
            (row - 1, column + 1),
            (row + 1, column - 1),
            (row + 1, column),
        ]
        neighbours[letter] = "".join(other for other in places if places[other] in around)
    return neighbours


_NEIGHBOURS = _neighbours()


def in_capitals(text: str) -> str:
    """The text in capitals: "Groß" becomes "GROSS"."""
    return text.upper()


def in_title_case(text: str) -> str:
    """The text with a capital at the beginning of each word; other letters stay as they are.

    "a dog's NASA T-shirt" becomes "A Dog's NASA T-Shirt".
    """
    return _FIRST_LETTER.sub(lambda match: match[0].title(), text)


def without_final_stop(text: str) -> str:
    """The text without its last full stop; a text that ends in no full stop stays as it is."""
    return _FINAL_STOP.sub("", text)


def with_typos(text: str, seed: int = 1) -> str:
    """The text with a typo in about one of seven words, and in one word at least.

    A typo is a letter that is left out, doubled, or swapped with the next one, or another letter
    for it or beside it, from a key nearby. Keys are those of an English keyboard; letters that
    it lacks get no typo of that kind. Words of one or two letters have none.

    Args:
        text: a sentence of a language that puts spaces between its words.
        seed: determines the typos, with the text.

    Returns:
        The text with typos; the same for equal arguments on any machine. A text without a word of
        three letters stays as it is.
    """
    words = list(_LONG_WORD.finditer(text))
    if not words:
        return text
    # Of random's methods, Python promises the numbers of random() alone for other versions.
    generator = random.Random(f"{seed} {text}")
    count = max(1, round(len(text.split()) / _WORDS_PER_TYPO))
    order = sorted(range(len(words)), key=lambda _: generator.random())
    parts = []
    end = 0
    for index in sorted(order[:count]):
        word = words[index]
        parts += [text[end : word.start()], _misspelt(word[0], generator)]
        end = word.end()
    return "".join([*parts, text[end:]])


def _misspelt(word: str, generator: random.Random) -> str:
    """A word of at least two letters with a typo, which makes it another word."""
    place = int(generator.random() * len(word))
    letter = word[place]
    before, after = word[:place], word[place + 1 :]
    typos = [before + after, before + letter + letter + after]
    if after and after[0] != letter:
        typos.append(before + after[0] + letter + after[1:])
    nearby = _NEIGHBOURS.get(letter.lower())
    if nearby:
        other = _drawn(nearby, generator)
        if letter.isupper():
            other = other.upper()
        typos += [before + other + after, before + letter + other + after]
    return _drawn(typos, generator)


def _drawn(items: Sequence[_Item], generator: random.Random) -> _Item:
    return items[int(generator.random() * len(items))]
