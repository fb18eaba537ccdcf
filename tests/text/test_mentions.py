"""Tests which words of a text are mentions of a character."""

import pytest

from leporello import Document, Span
from leporello.text.folding import ComposedText
from leporello.text.mentions import mentions, mentions_in

FOUND: tuple[tuple[str, str, list[str]], ...] = (
    # Titles, and parts of a name.
    ("Darcy", "Mr. Darcy bowed to Miss Darcy.", ["Mr. Darcy", "Miss Darcy"]),
    ("Mr. Darcy", "So Darcy bowed, and Mr Darcy left.", ["Darcy", "Mr Darcy"]),
    ("Mr. Darcy", "Near him Miss Darcy sang, and Mrs. Darcy.", []),
    (
        "Captain Jack Sparrow",
        "Captain Jack Sparrow! So Jack, or Sparrow, or Captain Sparrow; the Captain.",
        ["Captain Jack Sparrow", "Jack", "Sparrow", "Captain Sparrow"],
    ),
    ("DR. NO", "He told Dr. No that no one knew Doctor No.", ["Dr. No", "Doctor No"]),
    ("Captain", "Ask the Captain, captain.", ["Captain"]),
    # Cues.
    ("HARRY", "HARRY: Where have they gone?", ["HARRY"]),
    ("HARRY", "          HARRY (V.O.)\n   Hm.\n\tHARRY (CONT'D):\n", ["HARRY", "HARRY"]),
    ("Harry Potter", "HARRY POTTER\nNo.\n\nPOTTER (O.S.)\nNo.\n", ["HARRY POTTER", "POTTER"]),
    # Possessives.
    ("Harry", "The boat is Harry's, Harry’s, HARRY'S.", ["Harry", "Harry", "HARRY"]),
    ("James", "It was James' hat, James’s hat.", ["James", "James"]),
    # Letter case.
    ("harry", "We saw Harry and HARRY but no harry.", ["Harry", "HARRY"]),
    ("HARRY", "where is harry\nharry is here", ["harry", "harry"]),
    ("Will", "We saw Will, who will come. Will she? I will. Will you? He will.", ["Will"]),
    ("Hope", "I HOPE SO.\nI hope so. So Hope said, I hope.", ["Hope"]),
    ("Rose", "He rose. WILL and ROSE enter. He rose.", ["ROSE"]),
    # Complete words.
    ("Ann", "Anna saw Ann and _Ann_ with Hannah, Ann-Marie, Mary-Ann, ex-Ann.", ["Ann"] * 3),
    ("Brien", "We met O'Brien, and l’Brien, and Brien.", ["Brien", "Brien"]),
    # Initials, hyphens, apostrophes.
    ("Harry Potter", "So Harry J. Potter and H. Potter came.", ["Harry J. Potter", "H. Potter"]),
    ("J. R. Ewing", "It is J. R. Ewing. It is J. or R. here.", ["Ewing"]),
    ("E.T.", "It is E.T. here, or ET.", ["E.T", "ET"]),
    ("Jean-Luc Picard", "So Jean-Luc or Jean Luc Picard.", ["Jean-Luc", "Jean Luc Picard"]),
    ("R2-D2", "See R2-D2, R2D2, and D2.", ["R2-D2", "R2D2"]),
    ("O'Brien", "See O’Brien, OBRIEN.", ["O’Brien", "OBRIEN"]),
    ("Carl van Loon", "So van Loon and Carl van Loon.", ["Loon", "Carl van Loon"]),
    # Marks, and other scripts.
    ("Zoë", "So Zoe, Zoë, ZOË and Zoe\u0308!", ["Zoe", "Zoë", "ZOË", "Zoe\u0308"]),
    ("SOREN", "So Søren.", ["Søren"]),
    ("Алёна", "Вот АЛЕНА и Алёна, не Алёнка.", ["АЛЕНА", "Алёна"]),
    ("Søren", "So Sø\u00adren and \uff33øren.", ["Sø\u00adren", "\uff33øren"]),
    ("Sofia", "So\ufeff So\ufb01a and So\u200bfia.", ["So\ufb01a", "So\u200bfia"]),
    ("Agent 47", "So Agent ٤٧ came.", ["Agent ٤٧"]),
    ("한국", "\u1112\u1161\u11ab국 한국", ["\u1112\u1161\u11ab국", "한국"]),
    ("\u304b\u3099く", "がくが来た。", ["がく"]),
    ("हर्ष", "यह हर्ष है।", ["हर्ष"]),
    ("محمّد", "قال محمد نعم، محمّد", ["محمد", "محمّد"]),
    ("张伟", "张伟说你好。我见张伟了。", ["张伟", "张伟"]),
    # Descriptions instead of names, and names with additions.
    ("Agent 47", "So Agent 47 sees Agent 48 and 47 people.", ["Agent 47"]),
    ("THE MAN IN BLACK", "So the Man in Black is a man. A MAN came.", ["Man in Black"]),
    ("OLD MAN", "So the Old Man spoke. A MAN is an old man.", ["Old Man"]),
    ("YOUNG HARRY", "So Young Harry and Harry.", ["Harry", "Harry"]),
    ("Lawrence of Arabia", "So Lawrence left Arabia.", ["Lawrence"]),
    ("Harry (young)", "See Harry.", ["Harry"]),
    ("Harry Jones, Jr.", "See Harry Jones.", ["Harry Jones"]),
    ('Tony "Iron Man" Stark', "So Tony Stark is Iron Man.", ["Tony Stark", "Iron Man"]),
    ("Bruce Wayne / Batman", "So Bruce is Batman.", ["Bruce", "Batman"]),
    # Relatives.
    ("Harry Potter", "He and James Potter; Lily Potter's son.", []),
    ("Harry Potter", "He met Harry Osborn. He met Harry, Professor Lupin.", ["Harry"]),
    ("Harry Potter", "So Harry James Potter met J. Potter.", ["Harry James Potter"]),
    ("Harry Potter", "When Potter came, Mr. Potter left.", ["Potter", "Mr. Potter"]),
    ("Harry", "So Harry Potter met Harry Osborn.", ["Harry", "Harry"]),
    # Nothing.
    ("", "Harry", []),
    ("Who is the man that Harry saw at the gate? " * 3, "Harry", []),
)  # fmt: skip


@pytest.mark.parametrize(("name", "text", "expected"), FOUND)
def test_mentions_of_a_name(name: str, text: str, expected: list[str]) -> None:
    spans = mentions(ComposedText.of(text), name)
    assert [text[span.start : span.end] for span in spans] == expected


def test_mentions_are_cached_by_the_document() -> None:
    document = Document("d", "So Harry came.")
    assert mentions_in(document, "Harry") == (Span(3, 8),)
    assert mentions_in(document, "Harry") is mentions_in(document, "Harry")
