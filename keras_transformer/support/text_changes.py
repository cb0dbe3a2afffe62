"""Changes text to resemble user input: capitals, title case, typos, no full stop.

Used to augment training data, and to evaluate models on such text.
"""

import random
import re
from collections.abc import Sequence
from typing import TypeVar

# The first letter of a word. "don't" and "3rd" contain no second word; an accent may be a separate
# character after its letter.
_FIRST_LETTER = re.compile(r"(?<![\w\u0300-\u036f])(?<![\w\u0300-\u036f]['’])[^\W\d_]")
# The final full stop of an ordinary or tokenized sentence, but not an ellipsis.
_FINAL_STOP = re.compile(r"(?<=[^.\s])\s*[.。．｡।۔]\s*$")
# A word long enough to be recognized despite a typo.
_LONG_WORD = re.compile(r"[^\W\d_]{3,}")
_WORDS_PER_TYPO = 7
_KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_Item = TypeVar("_Item")


def _neighbours() -> dict[str, str]:
    """Maps each letter on the keyboard to the letters on adjacent keys."""
    places = {}
    for row, letters in enumerate(_KEYBOARD):
        for column, letter in enumerate(letters):
            places[letter] = (row, column)
    neighbours = {}
    for letter, (row, column) in places.items():
        # Each row is shifted half a key to the right of the one above.
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
    """Returns the text in capitals: "Groß" becomes "GROSS"."""
    return text.upper()


def in_title_case(text: str) -> str:
    """Capitalizes the first letter of each word; other letters stay unchanged.

    "a dog's NASA T-shirt" becomes "A Dog's NASA T-Shirt".
    """
    return _FIRST_LETTER.sub(lambda match: match[0].title(), text)


def without_final_stop(text: str) -> str:
    """Removes the final full stop, if there is one."""
    return _FINAL_STOP.sub("", text)


def with_typos(text: str, seed: int = 1) -> str:
    """Adds a typo to about one word in seven, and to at least one word.

    A typo deletes a letter, doubles it, swaps it with the next one, or replaces it or adds to it a
    letter from an adjacent key. Keys are those of an English keyboard; letters that it lacks get no
    typo of that kind. Words of one or two letters get none.

    Args:
        text: a sentence in a language that puts spaces between words.
        seed: determines the typos, with the text.

    Returns:
        The text with typos; the same for equal arguments on any machine. A text without a word of
        three letters stays unchanged.
    """
    words = list(_LONG_WORD.finditer(text))
    if not words:
        return text
    # random() is the only method whose numbers Python keeps stable across versions.
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
    """Returns a word of at least two letters with a typo; the result always differs."""
    index = int(generator.random() * len(word))
    letter = word[index]
    before, after = word[:index], word[index + 1 :]
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
