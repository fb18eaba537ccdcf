"""Tests of the page in a real browser: the distribution's Chromium, if it is installed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from command_line import ROOT, command
from stories import pdf

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page, Route

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(CHROMIUM is None, reason="needs the distribution's chromium"),
]
FACT = "Ann Dunning 🦉 found the unread fax behind the boiler."
HOSTILE = "<img src=x onerror=document.title='gone'></script><b>bold</b>"
LAMP = "Zoe\u0308 🦉🦉 keeps **the *red* lamp** in the \U0001f3da cellar."
STRUCTURE = f"""{HOSTILE}

# Tolls

These lines are
one paragraph. {LAMP}

- A person 🦉
  pays a penny.
- A horse pays two.

| Load | Toll |
|------|------|
| cart 🦉 | **nine** |

```
if cart:
    pay()
```

"""


@pytest.fixture(name="page", scope="module")
def _page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A browser with the page of a one-megabyte document; checks for errors at the end."""
    file = tmp_path_factory.mktemp("files") / "ferry.md"
    filler = "The rain fell on the harbour, and the boats lay still.\n\n" * 60
    chapters = [f"# Chapter {n}\n\n{filler}{FACT * (n == 200)}\n\n" for n in range(1, 301)]
    file.write_text(STRUCTURE + "".join(chapters), encoding="utf-8")
    serve = command("serve", file, "--no-cache", "--set", "reader.class=BestSentence")
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with ExitStack() as stack:
        server = stack.enter_context(
            subprocess.Popen(serve, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment)
        )
        playwright = stack.enter_context(sync_api.sync_playwright())
        # A key pressed faster than by a person would meet the animated scroll of the one before it.
        flags = ["--no-sandbox", "--disable-smooth-scrolling"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        page, errors = browser.new_page(), []
        page.on("console", lambda message: errors.append(message.text))
        page.on("pageerror", lambda error: errors.append(str(error)))
        assert server.stdout
        page.goto(server.stdout.readline().strip())
        yield page
        browser.close()
        server.terminate()
        assert server.wait(30) == 0
        assert [error for error in errors if "Failed to load" not in error] == []


def ask(page: Page, question: str) -> Locator:
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.press("Control+a")
    page.keyboard.type(question)
    page.keyboard.press("Enter")
    turn = page.locator(".turn").first
    sync_api.expect(turn.locator("h2")).to_have_text(question)
    return turn


def test_an_answer_is_highlighted_in_the_text(page: Page) -> None:
    assert "token" not in page.url
    turn = ask(page, "Who found the unread fax?")
    sync_api.expect(turn.locator(".told")).to_have_text(FACT)
    sync_api.expect(turn.locator(".card mark.answer").first).to_have_text(FACT)
    answer = page.locator("#text mark.answer")
    sync_api.expect(answer).to_have_text(FACT)
    sync_api.expect(answer).to_be_in_viewport()
    sync_api.expect(page.locator(".entry[aria-current]")).to_have_text("Chapter 200")
    assert "Chapter 200" in turn.locator("button").first.inner_text()
    turn.get_by_text("Coverage").click()
    assert " characters: " in turn.inner_text()
    assert len(page.locator("#text").inner_text()) < 60_000


def test_the_text_has_its_structure_and_exact_offsets(page: Page) -> None:
    turn = ask(page, "What is in the cellar?")
    text = page.locator("#text")
    marks = text.locator("mark.answer")
    sync_api.expect(marks.last).to_be_in_viewport()
    assert turn.locator(".told").inner_text() == "".join(marks.all_text_contents()) == LAMP
    emphasis = text.locator("p strong").all_inner_texts()
    assert "".join(emphasis) == "the red lamp"
    assert text.locator("p em").all_inner_texts() == ["red"]
    paragraph = text.locator("p").nth(1)
    sync_api.expect(paragraph).to_contain_text("These lines are one paragraph")
    assert paragraph.inner_text().startswith("These lines are one paragraph")
    assert text.locator("li").all_inner_texts() == [
        "A person 🦉 pays a penny.",
        "A horse pays two.",
    ]
    assert text.locator("th").all_inner_texts() == ["Load", "Toll"]
    assert text.locator("td").all_inner_texts() == ["cart 🦉", "nine"]
    assert text.locator("pre").inner_text().strip() == "if cart:\n    pay()"
    assert text.locator("h2").all_inner_texts()[:2] == ["Tolls", "Chapter 1"]
    assert HOSTILE in text.inner_text()
    nodes = text.locator("[data-start]").evaluate_all(
        "nodes => nodes.map(node => [Number(node.dataset.start), node.textContent])"
    )
    assert len(nodes) > 50
    assert all(STRUCTURE.startswith(t, at) for at, t in nodes if at < len(STRUCTURE))


def test_the_keyboard_scrolls_the_text(page: Page) -> None:
    text, here = page.locator("#text"), page.locator("#here")
    page.keyboard.press("Escape")
    page.keyboard.press("Home")
    sync_api.expect(text).to_contain_text(HOSTILE)
    assert page.title() == "ferry.md"
    page.keyboard.press("End")
    sync_api.expect(here).to_contain_text("Chapter 300")
    for _ in range(30):
        top = text.evaluate("view => view.scrollTop")
        page.keyboard.press("PageUp")
        page.wait_for_function("top => document.getElementById('text').scrollTop !== top", arg=top)
    assert 1 < page.locator("#text .piece").count() <= 6
    page.keyboard.press("g")
    page.keyboard.type("Chapter 12")
    page.keyboard.press("Enter")
    sync_api.expect(here).to_contain_text("Chapter 12")
    sync_api.expect(page.locator(".entry").first).to_have_text("Chapter 12")


def test_keys_step_through_passages_and_list_themselves(page: Page) -> None:
    turn = ask(page, "Who found the rain on the harbour?")
    cards = turn.locator(".card:visible")
    sync_api.expect(cards.first).to_have_attribute("aria-current", "true")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    sync_api.expect(cards.nth(1)).to_have_attribute("aria-current", "true")
    cards.nth(1).locator("button").first.focus()
    page.keyboard.press("ArrowDown")
    sync_api.expect(cards.nth(2)).to_have_attribute("aria-current", "true")
    sync_api.expect(cards.nth(2).locator("button").first).to_be_focused()
    page.keyboard.press("k")
    sync_api.expect(cards.nth(1)).to_have_attribute("aria-current", "true")
    page.keyboard.press("?")
    sync_api.expect(page.get_by_role("dialog")).to_contain_text("Ask a question")
    page.get_by_role("button", name="Close").click()
    sync_api.expect(page.get_by_role("dialog")).to_be_hidden()


@pytest.mark.parametrize(
    ("changes", "warning"),
    [
        ({"certainty": "unsure", "confidence": 0.28}, "unsure · 28 %"),
        ({"found": False, "told": "The document does not say so."}, "These passages are the"),
    ],
)
def test_a_doubtful_answer_is_marked(page: Page, changes: dict[str, object], warning: str) -> None:
    def reply(route: Route) -> None:
        lines = route.fetch().text().splitlines()
        answer = json.loads(lines[-1])["answer"] | changes
        answer["passages"] = (answer["passages"] * 5)[:5]
        route.fulfill(body=json.dumps({"answer": answer}) + "\n")

    page.route("**/ask", reply)
    turn = ask(page, f"Who pays a penny, {warning}?")
    page.unroute("**/ask")
    sync_api.expect(turn).to_contain_text(warning)
    sync_api.expect(turn.locator("h3 ~ .card")).to_have_count(3)
    sync_api.expect(turn.get_by_text("2 more passages")).to_be_visible()


def test_a_narrow_screen_shows_one_part(page: Page) -> None:
    turn = ask(page, "Who found the unread fax?")
    page.set_viewport_size({"width": 400, "height": 800})
    sync_api.expect(page.locator("#text")).to_be_hidden()
    turn.locator("button").first.click()
    sync_api.expect(page.locator("#text mark.answer")).to_be_in_viewport()
    sync_api.expect(turn).to_be_hidden()
    assert page.evaluate("() => document.documentElement.scrollWidth") == 400
    page.set_viewport_size({"width": 1280, "height": 720})


def test_a_file_is_added_and_asked(page: Page, tmp_path: Path) -> None:
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7 no more")
    data = page.evaluate_handle(
        """() => {
            const data = new DataTransfer();
            data.items.add(new File(["Ned has a boat."], "boat.txt"));
            return data;
        }"""
    )
    page.dispatch_event("#text", "dragover", {"dataTransfer": data})
    sync_api.expect(page.locator("#drop")).to_be_visible()
    page.dispatch_event("#text", "drop", {"dataTransfer": data})
    sync_api.expect(page.locator("#title")).to_have_text("boat.txt")
    assert ask(page, "Who has a boat?").locator(".told").inner_text() == "Ned has a boat."
    page.set_input_files("#file", tmp_path / "broken.pdf")
    sync_api.expect(page.locator("#step")).to_contain_text("broken.pdf: ")
    page.locator("#document").select_option("ferry.md")
    sync_api.expect(page.locator(".turn h2").last).to_have_text("Who found the unread fax?")


def test_a_place_opens_the_page_of_the_pdf(page: Page, tmp_path: Path) -> None:
    (tmp_path / "things.pdf").write_bytes(pdf("Ned has a boat.", "Ann has a barrel."))
    page.set_input_files("#file", tmp_path / "things.pdf")
    sync_api.expect(page.locator("#title")).to_have_text("things.pdf")
    turn = ask(page, "Who has a barrel?")
    with page.expect_popup() as popup:
        turn.get_by_role("button", name="Open in PDF").first.click()
    popup.value.wait_for_url(re.compile(r"^blob:http://127\.0\.0\.1:.*#page=2$"))
    popup.value.close()
