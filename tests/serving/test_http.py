"""Tests of the page's server: access control, responses and added files."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import urllib.request
from collections.abc import AsyncIterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from command_line import ROOT, command, leporello
from starlette.testclient import TestClient
from stories import pdf

from leporello import Document
from leporello.chunkers import Paragraphs
from leporello.combiners import Stuff
from leporello.config import Pipeline
from leporello.core.errors import UserError
from leporello.core.records import Coverage, Loss, Place, Span
from leporello.readers import BestSentence
from leporello.retrievers import BM25
from leporello.runs.ask import Answer, AskSettings, Session
from leporello.serving import serve
from leporello.serving.access import AccessControl, TooLargeError
from leporello.serving.app import application
from leporello.serving.documents import OpenDocuments, turn
from leporello.serving.tools import outline

TOKEN, OWN = "secret", "http://127.0.0.1:8000"
API = {"authorization": f"Bearer {TOKEN}"}
TEXT = "Ann 🦉 found the fax.\n\nThe ferry runs \ud800 since 1871."


@pytest.fixture(name="documents")
def _documents() -> OpenDocuments:
    """A page with one document, which has two pages and a loss."""
    places, losses = (Place("p. 1", 0, 23), Place("p. 2", 23, len(TEXT))), (Loss("image", "why"),)
    document = Document("a.pdf", TEXT, "A", places=places, losses=losses)
    stages = Pipeline(Paragraphs(5), BM25(k=1), BestSentence(), Stuff())
    session = Session(document, AskSettings(cached=False), stages)
    return OpenDocuments([session], largest=100, room=150)


@pytest.fixture(name="client")
def _client(documents: OpenDocuments) -> TestClient:
    return TestClient(AccessControl(application(documents), TOKEN, 8000), OWN, headers=API)


def test_texts_need_the_token_in_a_header(documents: OpenDocuments) -> None:
    """The page itself is public and sets no cookie, which other ports of the host would receive."""
    stranger = TestClient(AccessControl(application(documents), TOKEN, 8000), OWN)
    for path in ("/", "/page.js", "/server.js", "/text.js", "/page.css", "/docs", "/openapi.json"):
        reply = stranger.get(path)
        assert (reply.status_code, reply.headers.get("set-cookie")) == (200, None)
        assert reply.headers["connection"] == "close"  # many strangers must not use up the files
        assert TOKEN not in reply.text
    texts = ("/documents", "/documents/0", "/documents/0/text?start=0&end=9")
    for path in (*texts, "/documents/0/pdf?at=0", "/none"):
        for headers in ({}, {"authorization": "Bearer other"}, {"cookie": f"a={TOKEN}"}):
            reply = stranger.get(path, headers=headers, params={"token": TOKEN})
            assert (reply.status_code, reply.headers["connection"]) == (403, "close")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "127.0.0.1:8000"}, 200),
        ({"host": "localhost:8000", "origin": OWN}, 200),
        ({"host": "evil.example:8000"}, 403),
        ({"host": "127.0.0.1:8000.evil.example"}, 403),
        ({"host": "127.0.0.1:9000"}, 403),
        ({"origin": "http://127.0.0.1:9000"}, 403),
        ({"origin": "null"}, 403),
    ],
)
def test_another_site_is_refused(client: TestClient, headers: dict[str, str], status: int) -> None:
    """A wrong host name, as with DNS rebinding, and a wrong origin are refused."""
    assert client.get("/documents", headers=headers).status_code == status


def test_nothing_is_loaded_from_other_sites(client: TestClient) -> None:
    for response in (client.get("/"), client.get("/none")):
        assert "default-src 'none'" in response.headers["content-security-policy"]
        assert response.headers["x-content-type-options"] == "nosniff"
    page = client.get("/").text
    assert "style=" not in page
    assert "onclick=" not in page
    for name in ("page", "server", "text"):
        assert "innerHTML" not in client.get(f"/{name}.js").text


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/documents/1", 404),
        ("/documents/-1", 400),
        ("/documents/0/text?start=x&end=2", 400),
        ("/documents/0/text?start=-1&end=2", 400),
        ("/documents/../../etc/passwd", 404),
        ("/..%2f..%2fetc/passwd", 404),
        ("/page.py", 404),
        ("/app.py", 404),
    ],
)
def test_other_files_are_not_served(client: TestClient, path: str, status: int) -> None:
    assert client.get(path).status_code == status


def test_text_is_sent_in_pieces_with_places(client: TestClient) -> None:
    [about] = client.get("/documents").json()["documents"]
    assert (about["length"], len(about["notes"])) == (len(TEXT), 1)
    second = TEXT.index("The ferry")
    piece = client.get(f"/documents/0/text?start={second + 4}&end=999999999").json()
    assert (piece["start"], piece["end"], piece["text"]) == (second, len(TEXT), TEXT[second:])
    assert [block["kind"] for block in piece["blocks"]] == ["paragraph"]
    assert piece["places"] == [{"name": "p. 2", "start": 23}]
    assert client.get("/documents/0/text?start=999999999&end=0").json() == piece
    before = client.get(f"/documents/0/text?start=0&end={second}").json()
    assert (before["start"], before["end"], before["text"]) == (0, second, TEXT[:second])


def test_plain_text_has_an_outline_of_its_headings(documents: OpenDocuments) -> None:
    text = "1. Ferry\n\nIt runs.\n\n2. Tolls\n\nOne penny.\n\n3. Keepers\n\nGrigor."
    documents.sessions[0] = documents.sessions[0].about(Document("a.txt", text))
    entries = outline(documents.sessions[0]).entries
    starts = [text.index(title) for title in ("1. Ferry", "2. Tolls", "3. Keepers")]
    assert [entry.start for entry in entries] == starts


@pytest.mark.parametrize(
    ("text", "answer", "source"),
    [
        ("# Ferry\n\nIt rains. Ann paid two. It snows.\n", "two", "Ann paid two."),
        ("# Ferry\n\nIt rains. Ann paid.\n\n# Sea\n\nIt snows.", "Ann paid.",
         "It rains. Ann paid."),
        ("Load\tToll\nLoad: cart\tToll: nine\nLoad: pig\tToll: two", "nine",
         "Load: cart\tToll: nine"),
        ("a " * 500 + "🦉 two" + " b" * 500, "two", f"{'a ' * 99}🦉 two{' b' * 100}"),
    ],
)  # fmt: skip
def test_an_answer_has_the_text_around_it(text: str, answer: str, source: str) -> None:
    document, start = Document("a.txt", text), text.index(answer)
    coverage = Coverage.of(len(text), (), (), ())
    spans = (Span(start, start + len(answer)),)
    excerpt = turn("q", Answer("q", answer, (), coverage, document, spans=spans))["source"]
    assert excerpt["text"] == source == text[excerpt["start"] :][: len(source)]


def test_only_pdf_files_that_exist_are_sent(tmp_path: Path) -> None:
    for name, texts in (("a.pdf", ["One."]), ("b.pdf", ["Two.", "Three."])):
        (tmp_path / name).write_bytes(pdf(*texts))
    (tmp_path / "c.txt").write_text("Four.", encoding="utf-8")
    stages, settings = Pipeline(Paragraphs(5), BM25(k=1), BestSentence(), Stuff()), AskSettings()
    session = Session(settings.document([tmp_path]), AskSettings(cached=False), stages)
    documents = OpenDocuments([session], originals=[settings.originals([tmp_path])])
    client = TestClient(AccessControl(application(documents), TOKEN, 8000), OWN, headers=API)
    text = session.document.text

    def sent(word: str) -> tuple[int, str | None, bytes]:
        reply = client.get(f"/documents/0/pdf?at={text.index(word)}")
        return reply.status_code, reply.headers.get("x-page"), reply.content

    second = (tmp_path / "b.pdf").read_bytes()
    assert sent("One") == (200, "1", (tmp_path / "a.pdf").read_bytes())
    assert (sent("Two"), sent("Three")) == ((200, "1", second), (200, "2", second))
    assert sent("Four")[0] == 404
    [about] = client.get("/documents").json()["documents"]
    assert [text[start:end] for start, end in about["pdfs"]] == ["One.", "Two.\n\nThree."]
    (tmp_path / "a.pdf").write_text("a secret", encoding="utf-8")
    (tmp_path / "b.pdf").unlink()
    assert (sent("One")[0], sent("Two")[0]) == (404, 404)
    added = client.post("/documents?name=x.pdf", content=second).json()
    assert client.get(f"/documents/{added['number']}/pdf?at=6").headers["x-page"] == "2"
    assert client.get("/documents/0/pdf?at=../../a").status_code == 400


def test_an_answer_is_preceded_by_steps(client: TestClient) -> None:
    response = client.post("/documents/0/ask", content="Who found the fax?")
    *steps, last = map(json.loads, response.text.splitlines())
    assert [step["step"] for step in steps] == ["looking for passages", "reading 1 input", "1 read"]
    assert last["answer"]["told"] == "Ann 🦉 found the fax."
    assert last["answer"]["passages"][0]["place"] == "a.pdf p. 1"
    assert last["answer"]["source"]["text"].startswith("Ann 🦉 found the fax.")
    assert " characters: " in last["answer"]["coverage_lines"][0]
    assert client.get("/documents/0").json() == [last["answer"]]


def test_replies_to_programs_match_the_description(client: TestClient) -> None:
    refusal = client.post("/ask", json={"question": "Who?"}, headers={"authorization": ""})
    assert (refusal.status_code, [*refusal.json()]) == (403, ["error"])
    described = client.get("/openapi.json").json()
    requests: dict[str, Any] = {
        "/ask": {"question": "Who found the fax?"},
        "/passages": {"question": "Who found the fax?"},
        "/outline": {"like": "P."},
        "/documents": None,
    }
    replies = {}
    for path, body in requests.items():
        method = "get" if body is None else "post"
        response = client.request(method, path, json=body)
        success = described["paths"][path][method]["responses"]["200"]
        schema = success["content"]["application/json"]["schema"]
        jsonschema.validate(response.json(), {**schema, "components": described["components"]})
        replies[path] = response.json()
    answer, passages, outline, _ = replies.values()
    assert answer["answer"] == "Ann 🦉 found the fax."
    assert answer["stands"][0]["place"] == "a.pdf p. 1"
    assert (passages["passages"][0]["read"], passages["ledger"]["read"]) == (False, 0)
    assert [entry["name"] for entry in outline["entries"]] == ["p. 1", "p. 2"]
    assert "1 × image: why" in answer["ledger"]["told"]
    stretch = client.post("/passages", json=outline["entries"][1] | {"most": 1})
    assert "Extra inputs are not permitted" in stretch.json()["error"]
    stretch = client.post("/passages", json={"start": TEXT.index("\ud800"), "end": 99})
    assert stretch.json()["passages"][0]["text"] == "� since 1871."
    page = client.get("/docs").text
    assert all(f"{path}</h2>" in page for path in described["paths"])
    assert "<script" not in page


@pytest.mark.parametrize(
    ("address", "body", "status", "message"),
    [
        ("POST /ask", '{"question": 1}', 422, "question: must be a valid string"),
        ("POST /ask", "{", 422, "the request: Invalid JSON"),
        ("POST /ask", '{"question": "", "document": 7}', 404, "No document has the number 7"),
        ("POST /ask", " " * 1_000_001, 413, "exceeds the limit of 1,000,000 bytes"),
        ("POST /documents/0/ask", "x" * 50_000, 413, "the question: exceeds the limit of 40,000"),
        ("GET /ask", "", 405, "needs another method"),
        ("GET /none", "", 404, "/docs lists"),
    ],
)
def test_a_wrong_request_has_an_error_message(
    client: TestClient, address: str, body: str, status: int, message: str
) -> None:
    reply = client.request(*address.split(), content=body)
    assert reply.status_code == status
    assert message in reply.json()["error"]


def test_a_failed_stage_is_reported(client: TestClient, documents: OpenDocuments) -> None:
    documents.sessions[0].stages = Pipeline(Paragraphs(5), object(), BestSentence(), Stuff())
    for path in ("/ask", "/passages"):
        reply = client.post(path, json={"question": "Who?"})
        assert reply.status_code == 422
        assert "the retriever failed" in reply.json()["error"]


@pytest.mark.parametrize("name", ["b.txt", "../../b.txt", "..\\b.txt", "", "..", "\0/", "x" * 999])
def test_a_file_is_added_as_another_document(client: TestClient, name: str) -> None:
    response = client.post("/documents", params={"name": name}, content=b"Ned has a boat.")
    assert response.json()["number"] == 1
    assert client.get("/documents/1/text?start=0&end=99").json()["text"] == "Ned has a boat."
    answer = client.post("/documents/1/ask", content="Who has a boat?").text.splitlines()[-1]
    assert json.loads(answer)["answer"]["told"] == "Ned has a boat."
    assert client.get("/documents/0").json() == []


def test_unreadable_and_large_files_are_refused(client: TestClient) -> None:
    broken = client.post("/documents?name=b.pdf", content=b"%PDF-1.7 no more")
    assert broken.status_code == 422
    assert broken.json()["error"].startswith("b.pdf: ")
    assert client.post("/documents?name=b.txt", content=b"x" * 101).status_code == 413
    for status in (200, 413):
        assert client.post("/documents?name=c.txt", content=b"x " * 50).status_code == status


def test_files_that_arrive_at_once_share_the_room(documents: OpenDocuments) -> None:
    async def add(*sizes: int) -> list[BaseException | int]:
        async def blocks(size: int) -> AsyncIterator[bytes]:
            for _ in range(size):
                await asyncio.sleep(0)  # so that the files arrive in turns
                yield b"x"

        adding = [documents.add("b.txt", blocks(size)) for size in sizes]
        return await asyncio.gather(*adding, return_exceptions=True)

    replies = asyncio.run(add(90, 90, 90))
    assert [isinstance(reply, TooLargeError) for reply in replies] == [False, True, True]
    assert documents.room == 150 - 90


def test_a_wrong_port_is_reported(documents: OpenDocuments) -> None:
    with pytest.raises(UserError, match="port 99999"):
        serve(documents.sessions[0], 99999)
    assert "no such file" in leporello("serve", "none.txt", status=2).stderr


def test_control_c_ends_it(tmp_path: Path) -> None:
    """The status is 0; before, clients without a request do not lock the owner out."""
    path = tmp_path / "a.txt"
    path.write_text("Ned has a boat.", encoding="utf-8")
    with subprocess.Popen(
        command("serve", path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        cwd=ROOT, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:  # fmt: skip
        assert process.stdout
        address = process.stdout.readline().strip()
        port = int(address.partition("#")[0].rstrip("/").rpartition(":")[2])
        with ExitStack() as stack:
            strangers = [
                stack.enter_context(socket.create_connection(("127.0.0.1", port)))
                for _ in range(70)
            ]
            with suppress(ConnectionResetError):
                assert strangers[0].recv(1) == b""
            with urllib.request.urlopen(address) as page:  # noqa: S310 -- our own
                assert "<title>Leporello</title>" in page.read().decode()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, "ended\n")
    assert all("closed, since it sent no request" in line for line in err.splitlines())
    assert len(err.splitlines()) >= 6
