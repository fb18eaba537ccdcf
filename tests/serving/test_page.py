"""Tests of the page in a real browser: the distribution's Chromium, if it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from command_line import ROOT, command

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(CHROMIUM is None, reason="needs the distribution's chromium"),
]
FACT = "Ann Dunning 🦉 found the unread fax behind the boiler."
HOSTILE = "<img src=x onerror=document.title='gone'></script><b>bold</b>"


@pytest.fixture(name="page", scope="module")
def _page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A browser with the page of a one-megabyte document; checks for errors at the end."""
    file = tmp_path_factory.mktemp("files") / "ferry.md"
    filler = "The rain fell on the harbour, and the boats lay still.\n\n" * 60
    chapters = [f"# Chapter {n}\n\n{filler}{FACT * (n == 200)}\n\n" for n in range(1, 301)]
    file.write_text(f"{HOSTILE}\n\n{''.join(chapters)}", encoding="utf-8")
    serve = command("serve", file, "--no-cache", "--set", "reader.class=BestSentence")
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with ExitStack() as stack:
        server = stack.enter_context(
            subprocess.Popen(serve, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment)
        )
        playwright = stack.enter_context(sync_api.sync_playwright())
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
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
    """Asks a question with the keyboard, and returns the answer's element."""
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.press("Control+a")
    page.keyboard.type(question)
    page.keyboard.press("Enter")
    turn = page.locator(".turn").first
    sync_api.expect(turn.locator("h2")).to_have_text(question)
    return turn


def test_an_answer_is_highlighted_in_the_text(page: Page) -> None:
    """The text scrolls to the answer, although only the pieces around it are loaded."""
    assert "token" not in page.url
    turn = ask(page, "Who found the unread fax?")
    sync_api.expect(turn.locator(".told")).to_have_text(FACT)
    answer = page.locator("#text mark.answer")
    sync_api.expect(answer).to_have_text(FACT)
    sync_api.expect(answer).to_be_in_viewport()
    assert "Chapter 200" in turn.locator("button").first.inner_text()
    turn.get_by_text("Ledger").click()
    assert " characters: " in turn.inner_text()
    assert len(page.locator("#text").inner_text()) < 60_000


def test_the_keyboard_scrolls_the_text(page: Page) -> None:
    """It scrolls to the ends, by page and to a heading; distant pieces are unloaded."""
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
    assert page.evaluate("pieces.length") <= 6
    page.get_by_label("Go to place").fill("Chapter 12")
    page.keyboard.press("Enter")
    sync_api.expect(here).to_contain_text("Chapter 12")


def test_a_file_is_added_and_asked(page: Page, tmp_path: Path) -> None:
    """The first document keeps its answers; a broken file is reported."""
    (tmp_path / "boat.txt").write_text("Ned has a boat.", encoding="utf-8")
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7 no more")
    page.set_input_files("#file", tmp_path / "boat.txt")
    sync_api.expect(page.locator("#title")).to_have_text("boat.txt")
    assert ask(page, "Who has a boat?").locator(".told").inner_text() == "Ned has a boat."
    page.set_input_files("#file", tmp_path / "broken.pdf")
    sync_api.expect(page.locator("#step")).to_contain_text("broken.pdf: ")
    page.locator("#document").select_option("ferry.md")
    sync_api.expect(page.locator(".turn h2")).to_have_text(["Who found the unread fax?"])
