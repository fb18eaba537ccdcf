"""Tests of answers that are looked up in tables and numbered lists."""

import pytest

from leporello.core.records import Chunk, Document
from leporello.readers.embedded.rows import looked_up
from leporello.readers.embedded.spans import Candidate

PORTS = "Port\tShips 2023\tShips 2024\nRiga\t\t13\nMemel\t21\t\nLibau\t31\t33"
ACCOUNTS = (
    "\tNote\t2023\t2022\n\t\t£000\t£000\nRevenue\t3\t18,204\t17,331\nPremises\t\t(812)\t(799)"
)
CREW = (
    "Ship\tTons\nShip: Sven\tTons: 40\nShip: Ida\tTons: 90\n\n"
    "Captain\tAge\nCaptain: Rolf\tAge: 40\nCaptain: Nils\tAge: 51"
)
RULES = (
    "House rules\n\n1. Doors are shut at ten.\n2. No dogs in the attic.\n"
    "3. Coal is paid by the tenant, on Fridays.\n\nRule 3 may be waived.\n"
    "Clause 7.1: The roof is slate."
)
NOTHING = "unanswered"


def first(question: str, *passages: Chunk | str, wrong: str = "") -> str:
    """Returns the first answer after a wrong candidate; `NOTHING` without any."""
    texts = [p if isinstance(p, str) else p.text for p in passages]
    start = texts[0].index(wrong)
    answers = looked_up(question, passages, [Candidate(wrong, 0, start, start + len(wrong), 1.0)])
    assert all(texts[c.passage][c.start : c.end] == c.text for c in answers)
    return answers[0].text if answers else NOTHING


PRICES = "Market\n\nApples: 4 euros\n- Pears: 7 euros\nPlums: 3 euros\n\nNote: open at 9.\n"
PLAY = "Ida: Good day.\nSven: Who is there?\nIda: It is I, who came from the sea last night."
# Questions with their answers, by text and wrong candidate.
CASES = {
    # The header of a table names its cells.
    (PORTS, "21"): {
        "How many ships did Riga have in 2024?": "13",
        "How many ships did Riga have in 2023?": NOTHING,
        "How many ships did Memel have in 2024?": NOTHING,
        "How many ships did Libau have in 2024?": "33",
        "Which port had 31 ships in 2023?": "Libau",
        "How many ships did Tallinn have?": "21",
        "Did Riga have ships in 2023?": "21",
    },
    # The corner of a table may be empty.
    (ACCOUNTS, "£000"): {
        "What was the revenue in 2022?": "17,331",
        "How much were premises in 2023?": "(812)",
        "Which note explains the revenue?": "3",
        "Which note explains the premises?": NOTHING,
        "What was the profit in 2023?": "£000",
    },
    # A column of another table does not answer.
    (CREW, "40"): {
        "How many tons has Rolf?": NOTHING,
        "How many tons has Ida?": "90",
        "What is the age of Rolf?": "40",
        "Who is 51?": "Nils",
    },
    # An item is found by its number.
    (RULES, "Rule 3"): {
        "What does rule 3 say?": "Coal is paid by the tenant, on Fridays.",
        "What is the second rule?": "No dogs in the attic.",
        "Describe rule no. 1": "Doors are shut at ten.",
        "When is coal paid under rule 3?": "Rule 3",
        "What does clause 7.1 say?": "The roof is slate.",
        "What does rule 4 say?": "Rule 3",
    },
    # A question names lines by their labels.
    (PRICES, "4 euros"): {
        "What do pears cost?": "7 euros",
        "What do pears and plums cost?": "4 euros",
    },
    (PRICES, "Plums: 3 euros"): {"How much are the plums?": "3 euros"},
    (PRICES, "Market"): {"What do pears cost?": "Market"},
    (PLAY, "Good day"): {"What does Sven ask?": "Good day"},
}


@pytest.mark.parametrize(("text", "wrong"), CASES)
def test_questions_are_looked_up_in_tables_lists_and_labelled_lines(text: str, wrong: str) -> None:
    answers = {question: first(question, text, wrong=wrong) for question in CASES[text, wrong]}
    assert answers == CASES[text, wrong]


FLEET = "\t2023\t2024\nShips\t2024: 13\nCrew\t2023: 5\t2024: 7"
ITEMS = "Item\t2023\t2024\nItem: Ships\t2024: 13\nItem: Crew\t2023: 5\t2024: 7"


@pytest.mark.parametrize("text", [FLEET, ITEMS], ids=["no corner", "a corner"])
@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How many ships were there in 2024?", "13"),
        ("How many ships were there in 2023?", NOTHING),
        ("How many ships are there?", "13"),
        ("What was the crew in 2024?", "7"),
    ],
)
def test_a_row_with_one_filled_cell_answers_with_it(text: str, question: str, answer: str) -> None:
    assert first(question, text, wrong="2024: 13") == answer


def test_a_later_part_of_a_table_has_the_header_of_the_table() -> None:
    document = Document("ports", f"Ports\n\n{PORTS}\n")
    passage = document.chunk(document.text.index("Memel"), len(document.text))
    assert first("How many ships did Libau have in 2023?", passage, wrong="33") == "31"
    assert first("How many ships did Memel have in 2024?", passage, wrong="33") == NOTHING


def test_the_best_candidate_in_a_numbered_item_answers_questions_on_it() -> None:
    spans = [(RULES.index(text), text) for text in ("ten", "on Fridays")]
    candidates = [Candidate(text, 0, start, start + len(text), 1.0) for start, text in spans]
    assert looked_up("When is coal paid by rule 3?", [RULES], candidates)[0].text == "on Fridays"
