"""Words as the Moses tokenizer cuts them, the tokenization behind the paper's BLEU.

Written from the tokenizer's rules, not from its code. Its lists of abbreviations are not here but
shorter ones of our own, and its XML escapes ("&quot;") are left out: they rename tokens, which no
count of matching words can see.
"""

import re
import unicodedata

# What replace-unicode-punctuation maps to ASCII before tokenization.
_ASCII = str.maketrans(
    dict(
        zip(
            "，、”“∶：？《》）！（；」「～’━〈〉【】％．。",
            ',,""::?"")!(;""~\'-<>[]%..',
            strict=True,
        )
    )
    | dict(zip("０１２３４５６７８９", "0123456789", strict=True))
    | {"…": "..."}
)
_MULTIPLE_DOTS = re.compile(r"\.{2,}")
_ROMAN = re.compile(r"[IVX]+|[ivx]+")

# What may end in a full stop within a sentence, besides single letters: language -> words.
_ABBREVIATIONS = {
    "de": """
        Abb Abs Apr Art Aufl Aug Bd Bde Ca Co Corp Dez Di Dipl Do Dr Fa Feb Fig Fr Frl Ges Hbf Hr
        Hrn Hrsg Inc Ing Inst Jan Jg Jh Jhd Jr Jul Jun Kap Lt Ltd Mag Mi Min Mio Mo Mr Mrd Mrs Ms
        Nov Nr Okt Phil Prof Rd Red Sa Sen Sep Sept Sgt So Sr St Std Str Tab Tel Univ Vol Ziff Zt
        bzgl bzw ca dgl ebd eigtl etc evtl exkl ff geb gegr gest ggf gem inkl insb max min od o s
        sog tel u usf usw v verh vgl vs z zit zzgl zzt
    """,
    "en": """
        Adm Apr Assn Aug Ave Blvd Bros Capt Cmdr Co Col Corp Dec Dr Feb Fr Gen Gov Hon Inc Jan Jr
        Jul Jun Lt Ltd Maj Mar Messrs Mr Mrs Ms Mt Nov Oct Ph Pres Prof Pte Rd Rep Reps Rev Sen
        Sens Sep Sept Sfc Sgt Sr St Supt al cf eds v vs
    """,
    "fr": """
        Dr MM Me Mgr Pr Prof St Ste al apr art av bd boul cf chap coll dép ed env etc ex
        éd fasc fig fr hab ibid id jr lat max min mss obs pl pp pseud réf rééd sq suiv vb vol vs
    """,
}
_WORDS = {language: frozenset(words.split()) for language, words in _ABBREVIATIONS.items()}
# In front of a number only.
_BEFORE_NUMBERS = frozenset(["No", "Nos", "Nr", "Nrs", "Art", "art", "pp", "p", "n"])


def moses_tokens(sentence: str, language: str) -> list[str]:
    """Cuts a sentence into words and marks.

    Letters and digits stay together, with full stops, hyphens and grave accents among them; every
    other mark is a token of its own. A comma between two digits stays, and so does the full stop of
    an abbreviation, of a German ordinal, or in front of a lower-case word; one at the end of the
    sentence never does. Apostrophes are tokens (German), begin one (English: "it 's") or end
    one (French: "l' eau").

    Args:
        sentence: text of one line.
        language: "de", "en" or "fr"; any other has German's apostrophes and no abbreviations.
    """
    text = " ".join(sentence.translate(_ASCII).split())
    text = "".join(char for char in text if char >= " ")
    spaced = [
        _spaced(left, char, right, language)
        for left, char, right in zip(" " + text, text, text[1:] + " ", strict=False)
    ]
    words = _MULTIPLE_DOTS.sub(r" \g<0> ", "".join(spaced)).split()
    return [
        token
        for word, following in zip(words, [*words, None][1:], strict=True)
        for token in _without_full_stop(word, following, language)
    ]


def _spaced(left: str, char: str, right: str, language: str) -> str:
    """`char` with the spaces that part it from its neighbours."""
    if char == ",":
        return char if _is_number(left) and _is_number(right) else " , "
    if char == "'":
        return _spaced_apostrophe(left, right, language)
    return char if char in " .-`" or _is_alphanumeric(char) else f" {char} "


def _spaced_apostrophe(left: str, right: str, language: str) -> str:
    if language == "fr" and left.isalpha() and right.isalpha():
        return "' "
    if language == "en" and right.isalpha() and (left.isalpha() or _is_number(left)):
        # "1990's" is parted as "it's" is; "5'a" stays whole.
        return " '" if left.isalpha() or right == "s" else "'"
    return " ' "


def _without_full_stop(word: str, following: str | None, language: str) -> list[str]:
    """Parts a word from a full stop that ends a sentence."""
    stem = word[:-1]
    if not word.endswith(".") or not stem.strip("."):
        return [word]
    if following is not None:
        if following[0].islower() or _is_abbreviation(stem, language):
            return [word]
        if stem in _BEFORE_NUMBERS and following[0].isdecimal():
            return [word]
    return [stem, "."]


def _is_abbreviation(stem: str, language: str) -> bool:
    dotted = "." in stem and any(char.isalpha() for char in stem)  # "U.S", "z.B"
    if dotted or stem in _WORDS.get(language, ()):
        return True
    if language == "de" and (
        (stem.isdecimal() and len(stem) <= 2 and stem[0] != "0") or _ROMAN.fullmatch(stem)
    ):
        return True
    return len(stem) == 1 and stem.isascii() and stem.isalpha()


def _is_number(char: str) -> bool:
    return unicodedata.category(char).startswith("N")


def _is_alphanumeric(char: str) -> bool:
    # Letters, vowel signs, digits and letter-like numbers; not "²", "½" or a combining accent.
    category = unicodedata.category(char)
    return category[0] == "L" or category in ("Mc", "Nd", "Nl")
