"""Names of people in many languages, each with its ASCII form for an email (names.json)."""

import json
import re
import unicodedata
from pathlib import Path
from typing import NamedTuple

_LETTERS_WITHOUT_DECOMPOSITION = str.maketrans(
    {"ß": "ss", "ø": "o", "æ": "ae", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i", "’": ""}
)
_EMOJI = "🌻"


class Name(NamedTuple):
    written: str
    ascii: str


class Culture(NamedTuple):
    """The names of one language.

    Attributes:
        pattern: how a full name is made of `{given}` and `{family}`.
    """

    language: str
    given: list[Name]
    family: list[Name]
    pattern: str


class Person(NamedTuple):
    name: str
    local_part: str
    language: str


def build_person(number: int) -> Person:
    """The name of a person, its ASCII form for an email, and the language that the person writes in."""
    turn, index = divmod(number, len(CULTURES))
    language, givens, families, pattern = CULTURES[index]
    # Along the diagonals, all pairs of a given and a family name come once before any comes again.
    shift, index = divmod(turn, len(givens))
    given, family = givens[index], families[(index + shift) % len(families)]
    name = pattern.format(given=given.written, family=family.written)
    if number % 101 == 26:
        name = f"{name} {_EMOJI}"
    return Person(name, f"{given.ascii}.{family.ascii}".replace(" ", ""), language)


def _load_cultures() -> list[Culture]:
    data = json.loads((Path(__file__).parent / "names.json").read_text(encoding="utf-8"))
    return [
        Culture(
            culture["language"],
            [_parse_name(text) for text in culture["given"]],
            [_parse_name(text) for text in culture["family"]],
            culture["pattern"],
        )
        for culture in data
    ]


def _parse_name(text: str) -> Name:
    """A name such as `Zoë`, whose ASCII form follows from its letters, or `Олена/olena`."""
    written, _, ascii_form = text.partition("/")
    return Name(written, ascii_form or _fold_to_ascii(written))


def _fold_to_ascii(word: str) -> str:
    decomposed = unicodedata.normalize("NFKD", word.lower().translate(_LETTERS_WITHOUT_DECOMPOSITION))
    return re.sub("[^a-z-]", "", decomposed)


CULTURES = _load_cultures()
