"""LibreTranslate's protocol: requests and answers in the form its clients expect.

Its translation requests share a path with this server's own, and are recognized by their fields:
`q`, `source` and `target`.

Its clients send fields that it does not know, so a misspelled field is not reported. With `auto`,
only the model's languages are detected: in short texts, a detector of 140 finds any of them.
"""

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Annotated, Any

from keras_transformer.kit.documents.formats import check_beginning, format_of, saving_advice
from keras_transformer.kit.documents.text.encodings import decoded
from keras_transformer.kit.serving.detection import Detected
from keras_transformer.kit.serving.forms import Open, Upload
from keras_transformer.kit.serving.limits import Limits
from keras_transformer.kit.serving.requests import (
    FILE_FORMATS,
    Documents,
    ReviewBelow,
    Terminology,
    check_format,
    check_review_below,
    checked,
)
from keras_transformer.kit.serving.responses import Doubtful, FromMemory, WithoutTerms
from keras_transformer.support.errors import InputError, require
from keras_transformer.support.fields import shown, whole_number
from keras_transformer.use.store.languages import (
    AUTO,
    ModelLanguages,
    find_language,
    is_same,
    name_of,
    short_code,
)

OWN_FIELDS = ("q", "source", "target")  # any of them marks a request in this protocol


@dataclasses.dataclass(frozen=True)
class LibreTranslateRequest(Open):
    """Texts of any length, as LibreTranslate clients send them. Other fields are ignored."""

    q: Annotated[str | list[str], "One text, or several."]
    source: Annotated[str, 'Its language code, as in /languages, or "auto".']
    target: Annotated[str, "Language code of the translation."]
    format: Annotated[str, '"text", "html" or another document format.'] = "text"
    alternatives: Annotated[int, "Further translations per text, if beam_size allows them."] = 0
    terminology: Terminology = None


@dataclasses.dataclass(frozen=True)
class DetectRequest(Open):
    """A text whose language is to be detected. Other fields are ignored."""

    q: Annotated[str, "The text."]


@dataclasses.dataclass(frozen=True)
class FileRequest(Open):
    """A document to translate; its name's suffix gives its format. Other fields are ignored."""

    file: Annotated[Upload, "The document, in UTF-8 or the encoding that it declares."]
    source: Annotated[str, 'Its language code, as in /languages, or "auto".']
    target: Annotated[str, "Language code of the translation."]
    terminology: Terminology = None
    review_below: ReviewBelow = 0.0


@dataclasses.dataclass(frozen=True)
class DetectedAnswer:
    """A candidate for a text's language."""

    language: Annotated[str, "Its code."]
    confidence: Annotated[float, "Percent; 0 if no detector is installed."]


@dataclasses.dataclass(frozen=True)
class LibreTranslateAnswer:
    """The translations; if q is a list, so is each field."""

    translatedText: Annotated[str | list[str], "The translation."]
    alternatives: Annotated[
        list[str] | list[list[str]] | None, "Further translations, if requested, best first."
    ] = None
    detectedLanguage: Annotated[
        DetectedAnswer | list[DetectedAnswer] | None, 'If source is "auto".'
    ] = None


@dataclasses.dataclass(frozen=True)
class LanguageAnswer:
    """One of the model's languages."""

    code: Annotated[str, "The language code for requests."]
    name: Annotated[str, "In English."]
    targets: Annotated[list[str], "Codes of its target languages."]


@dataclasses.dataclass(frozen=True)
class SettingsAnswer:
    """The settings of a client: what it may offer its users."""

    charLimit: Annotated[int, "Maximum number of characters per request."]
    apiKeys: Annotated[bool, "Whether there are API keys."] = False
    keyRequired: Annotated[bool, "Whether a request needs one."] = False
    suggestions: Annotated[bool, "Whether there is /suggest."] = False


@dataclasses.dataclass(frozen=True)
class FileAnswer:
    """A translated document; equal sentences count once."""

    translatedFileUrl: Annotated[str, "Download address, valid for ten minutes."]
    from_memory: FromMemory
    without_terms: WithoutTerms
    doubtful: Doubtful
    left: Annotated[dict[str, int], "Pieces with letters that stay as they are, by kind."]


def is_libretranslate(fields: dict[str, Any]) -> bool:
    """Whether a translation request uses this protocol."""
    return any(name in fields for name in OWN_FIELDS)


def parse_libretranslate(
    fields: dict[str, Any], limits: Limits, languages: ModelLanguages | None, beam_size: int
) -> tuple[LibreTranslateRequest, Documents]:
    """Reads a LibreTranslateRequest.

    Args:
        fields: the fields of the body; in a form, all are strings.
        limits: the limits on requests.
        languages: the model's languages; None if unknown: any are accepted.
        beam_size: the model's beam size, the number of translations that it finds.

    Raises:
        InputError: for any other request. RequestError: 413 if there is too much text.
    """
    fields = _with_number(fields, "alternatives", whole_number)
    request = checked(LibreTranslateRequest, fields)
    to, language = check_languages(request.source, request.target, languages)
    check_format(request.format)
    texts = request.q if isinstance(request.q, list) else [request.q]
    limits.check_characters(texts)
    count = 1 + max(0, min(request.alternatives, beam_size - 1))
    return request, Documents(texts, request.format, count, to, language, request.terminology)


def parse_detect(fields: dict[str, Any], limits: Limits) -> str:
    """Reads the text of a DetectRequest; raises as `parse_libretranslate` does."""
    request = checked(DetectRequest, fields)
    limits.check_texts([request.q])
    return request.q


def parse_file(
    fields: dict[str, Any], limits: Limits, languages: ModelLanguages | None
) -> tuple[Documents, str]:
    """Reads a FileRequest; raises as `parse_libretranslate` does.

    Returns:
        The document, and the suffix of the file's name.
    """
    file = fields.get("file")
    rule = "must be a file in a form (multipart/form-data)"
    if not isinstance(file, Upload):
        raise InputError("file", rule, "none" if file is None else shown(file))
    request = checked(FileRequest, _with_number(fields, "review_below", _decimal))
    check_review_below(request.review_below)
    to, language = check_languages(request.source, request.target, languages)
    needs_source = languages is not None and len(languages.coded_sources) > 1
    rule = "must be given for a file, as the model reads the source language, too"
    require(language is not None or not needs_source, "source", rule, shown(request.source))
    ending = PurePath(file.name).suffix.lower()
    endings = [known for format in FILE_FORMATS.values() for known in format.endings]
    usual = ", ".join(format.endings[0] for format in FILE_FORMATS.values() if format.endings)
    advice = saving_advice(file.name) or f"its name must end in {usual} or the like"
    rule = f"must be in a supported format: {advice}"
    require(ending in endings, "file", rule, shown(file.name))
    format = format_of(file.name)
    content = file.content
    if not FILE_FORMATS[format].is_archive:  # read when it is translated
        if len(content) > limits.body_bytes:
            raise limits.body_refusal(f"{len(content):,} bytes")
        check_beginning(content, format, file.name)
        content = decoded(content, format, file.name)
        limits.check_texts([content])
    return (
        Documents([content], format, 1, to, language, request.terminology, request.review_below),
        ending,
    )


def _with_number(
    fields: dict[str, Any], name: str, number_of: Callable[[str], float | None]
) -> dict[str, Any]:
    """Replaces the text of a number, as in a form, by the number; other fields stay."""
    text = fields.get(name)
    number = number_of(text) if isinstance(text, str) else None
    return fields if number is None else {**fields, name: number}


def _decimal(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def check_languages(
    source: str, target: str, languages: ModelLanguages | None
) -> tuple[str | None, str | None]:
    """Rejects languages that a model does not translate.

    Returns:
        What texts must select, as Translator.with_codes takes it: a target language, or a direction
        if the source is known and needed, too; None for nothing. And the source language, None if
        unknown. Both are the model's names.
    """
    if languages is None:
        return None, None
    source_code = None
    targets = list(languages.targets)
    if source != AUTO and languages.sources:
        source_code = _same(languages.sources, source)
        rule = f'must be one of {_listed(languages.sources)} and "{AUTO}"'
        require(source_code is not None, "source", rule, shown(source))
        targets = languages.targets_of(source_code)
    target_code = _same(targets, target)
    one_of = "one of " if len(targets) > 1 else ""
    rule = f"must be {one_of}{_listed(targets)}"
    require(target_code is not None, "target", rule, shown(target))
    if not languages.has_codes:
        return None, None
    if languages.coded_sources and source_code is not None:
        return f"{source_code}-{target_code}", source_code
    return target_code, source_code


def is_translated(detected: dict[str, Any], target: str, languages: ModelLanguages | None) -> bool:
    """Whether a text with this detectedLanguage is in the target language already."""
    if languages is None:
        return False
    return _same(languages.targets, detected["language"]) == _same(languages.targets, target)


def with_sources(
    documents: Documents,
    detected: Sequence[dict[str, Any]],
    stays: Sequence[bool],
    languages: ModelLanguages | None,
) -> list[Documents]:
    """Adds the languages of texts that a model needs to know.

    Args:
        documents: the texts, whose `to` is a target language.
        detected: the detectedLanguage of each text.
        stays: whether each text stays as it is; those are left out.
        languages: the model's languages, if known.

    Returns:
        Each text with its direction; or all texts together, if the model needs no more.

    Raises:
        InputError: if the language of a text is not detected, or not one of the model's.
    """
    texts = zip(documents.texts, detected, stays, strict=True)
    changed = [(text, one) for text, one, is_kept in texts if not is_kept]
    if languages is None or len(languages.coded_sources) < 2:
        return [documents._replace(texts=[text for text, _ in changed])]
    parts = []
    for text, one in changed:
        source = _same(languages.coded_sources, one["language"])
        rule = f"must be given, as no language of the model is detected: {shown(text)}"
        require(source is not None, "source", rule, shown(one["language"]))
        to = f"{source}-{documents.to}"
        parts.append(documents._replace(texts=[text], to=to, language=source))
    return parts


def _same(codes: Sequence[str], requested: str) -> str | None:
    """Returns the matching code: "en" for "en-US", unless "en-US" itself is known."""
    exact = [code for code in codes if code.lower() == requested.lower()]
    similar = [code for code in codes if is_same(code, requested)]
    return next(iter(exact + similar), find_language(codes, requested))


def _listed(codes: Sequence[str]) -> str:
    return ", ".join(f'"{code}"' for code in codes)


def language_list(languages: ModelLanguages | None) -> list[dict[str, Any]]:
    """Returns a model's languages in the form of GET /languages; none if unknown."""
    if languages is None:
        return []
    codes = client_codes(languages)
    return [
        {
            "code": code,
            "name": name_of(name),
            "targets": [codes[target] for target in languages.targets_of(name)],
        }
        for name, code in codes.items()
    ]


def client_codes(languages: ModelLanguages | None) -> dict[str, str]:
    """Returns the codes of a model's languages for clients, many of which know only short ones.

    Returns:
        {the model's name: the code}, such as {"deu_Latn": "de"}; empty if no languages are known.
    """
    if languages is None:
        return {}
    short = {name: short_code(name) for name in [*languages.sources, *languages.targets]}
    counts = Counter(short.values())
    return {name: code if counts[code] == 1 else name for name, code in short.items()}


def detected_language(
    detected: list[Detected] | None, languages: ModelLanguages | None
) -> dict[str, Any]:
    """Returns `detectedLanguage`: the detected language, or else the only possible one.

    Args:
        detected: the text's likely languages; None if no detector is installed.
        languages: the model's languages, if known.
    """
    if detected:
        return detected[0]._asdict()
    sources = [] if languages is None else languages.sources
    codes = client_codes(languages)
    language = codes[sources[0]] if len(sources) == 1 else "und"  # "undetermined" in ISO 639
    return Detected(language, confidence=0.0)._asdict()


def translation_body(
    request: LibreTranslateRequest,
    translations: list[list[str]],
    detected: list[dict[str, Any]] | None,
) -> dict[str, Any]:
    """Returns the answer to a request.

    Args:
        request: the request.
        translations: translations of each text, best first.
        detected: the detectedLanguage of each text, if source is "auto".
    """
    others = [[text for text in dict.fromkeys(row) if text != row[0]] for row in translations]
    body: dict[str, list] = {"translatedText": [row[0] for row in translations]}
    if request.alternatives > 0:
        body["alternatives"] = others
    if detected is not None:
        body["detectedLanguage"] = detected
    if isinstance(request.q, list):
        return body
    return {name: rows[0] for name, rows in body.items()}
