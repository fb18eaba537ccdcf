"""The page's server: who is let in, what it sends, what it takes in."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from command_line import ROOT, command, leporello
from starlette.testclient import TestClient

from leporello import Document
from leporello.chunkers import Paragraphs
from leporello.combiners import Stuff
from leporello.config import Pipeline
from leporello.core.errors import UserError
from leporello.core.records import Loss, Place
from leporello.readers import BestSentence
from leporello.retrievers import BM25
from leporello.runs.ask import AskSettings, Session
from leporello.serving import serve
from leporello.serving.app import AccessControl, application
from leporello.serving.documents import OpenDocuments

TOKEN, OWN = "secret", "http://127.0.0.1:8000"
TEXT = "Ann 🦉 found the fax.\n\nThe ferry runs \ud800 since 1871."


@pytest.fixture(name="documents")
def _documents() -> OpenDocuments:
    """A page with one document of two pages, of which something is lost."""
    places, losses = (Place("p. 1", 0, 23), Place("p. 2", 23, len(TEXT))), (Loss("image", "why"),)
    document = Document("a.pdf", TEXT, "A", places=places, losses=losses)
    stages = Pipeline(Paragraphs(5), BM25(k=1), BestSentence(), Stuff())
    session = Session(document, AskSettings(cached=False), stages)
    return OpenDocuments([session], largest=100, room=150)


@pytest.fixture(name="client")
def _client(documents: OpenDocuments) -> TestClient:
    """A browser that was given the token."""
    app = AccessControl(application(documents), TOKEN, 8000)
    client = TestClient(app, OWN)
    assert client.get("/", params={"token": TOKEN}).status_code == 200
    return client


def test_the_token_is_needed_and_becomes_a_cookie(client: TestClient) -> None:
    """Scripts cannot read it, other sites do not have it sent; a wrong one is refused."""
    cookie = client.get("/", params={"token": TOKEN}).headers["set-cookie"]
    assert "HttpOnly; SameSite=Strict" in cookie
    assert client.get("/documents").status_code == 200
    client.cookies.clear()
    for path in ("/", "/page.js", "/documents", "/documents/0", "/?token=", "/?token=sécret"):
        assert client.get(path).status_code == 403
    assert client.get("/documents", params={"token": TOKEN}).status_code == 403


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
    """By the name that it asks for, as with DNS rebinding, or by the page that asks."""
    cookies = {"cookie": f"leporello-8000={TOKEN}"}
    assert client.get("/documents", headers={**cookies, **headers}).status_code == status


def test_nothing_is_loaded_from_elsewhere(client: TestClient) -> None:
    """The policy is on refusals too, and the page needs no more than it allows."""
    for response in (client.get("/"), client.get("/none")):
        assert "default-src 'none'" in response.headers["content-security-policy"]
        assert response.headers["x-content-type-options"] == "nosniff"
    page = client.get("/").text
    assert "style=" not in page
    assert "onclick=" not in page
    assert "innerHTML" not in client.get("/page.js").text


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/documents/1", 404),
        ("/documents/-1", 404),
        ("/documents/0/text?start=x&end=2", 400),
        ("/documents/0/text?start=-1&end=2", 400),
        ("/documents/../../etc/passwd", 404),
        ("/..%2f..%2fetc/passwd", 404),
        ("/page.py", 404),
        ("/app.py", 404),
    ],
)
def test_no_other_file_is_there(client: TestClient, path: str, status: int) -> None:
    """Files are not named by paths at all."""
    assert client.get(path).status_code == status


def test_text_comes_in_stretches_with_its_places(client: TestClient) -> None:
    """Offsets count characters; what is no character arrives; ends are clipped."""
    [about] = client.get("/documents").json()["documents"]
    assert (about["length"], len(about["notes"])) == (len(TEXT), 1)
    piece = client.get("/documents/0/text?start=4&end=999999999").json()
    assert (piece["start"], piece["text"]) == (4, TEXT[4:])
    assert piece["places"] == [{"name": "p. 2", "start": 23}]
    assert piece["place"] == "p. 1 to p. 2"


def test_an_answer_comes_by_steps(client: TestClient) -> None:
    """The last line is the answer, with its places and the ledger; the page has it later, too."""
    response = client.post("/documents/0/ask", content="Who found the fax?")
    *steps, last = map(json.loads, response.text.splitlines())
    assert [step["step"] for step in steps] == ["looking for passages", "reading 1 input", "1 read"]
    assert last["answer"]["told"] == "Ann 🦉 found the fax."
    assert last["answer"]["passages"][0]["place"] == "a.pdf p. 1"
    assert " characters: " in last["answer"]["ledger"][0]
    assert client.get("/documents/0").json() == [last["answer"]]


API = {"authorization": f"Bearer {TOKEN}"}


def test_programs_ask_with_the_token_and_every_reply_is_as_described(client: TestClient) -> None:
    """The description has a schema for what is taken and given; the page of it lists all."""
    client.cookies.clear()
    refusal = client.post("/ask", json={"question": "Who?"})
    assert (refusal.status_code, [*refusal.json()]) == (403, ["error"])
    described = client.get("/openapi.json", headers=API).json()
    requests: dict[str, Any] = {
        "/ask": {"question": "Who found the fax?"},
        "/passages": {"question": "Who found the fax?"},
        "/outline": {"like": "P."},
        "/documents": None,
    }
    replies = {}
    for path, sent in requests.items():
        method = "get" if sent is None else "post"
        got = client.request(method, path, json=sent, headers=API)
        success = described["paths"][path][method]["responses"]["200"]
        schema = success["content"]["application/json"]["schema"]
        jsonschema.validate(got.json(), {**schema, "components": described["components"]})
        replies[path] = got.json()
    answer, passages, outline, _ = replies.values()
    assert (answer["answer"], answer["stands"][0]["place"]) == (
        "Ann 🦉 found the fax.",
        "a.pdf p. 1",
    )
    assert (passages["passages"][0]["read"], passages["ledger"]["read"]) == (False, 0)
    assert [entry["name"] for entry in outline["entries"]] == ["p. 1", "p. 2"]
    assert "1 × image: why" in answer["ledger"]["told"]
    stretch = client.post("/passages", json=outline["entries"][1] | {"most": 1}, headers=API)
    assert "Extra inputs are not permitted" in stretch.json()["error"]
    stretch = client.post("/passages", json={"start": TEXT.index("\ud800"), "end": 99}, headers=API)
    assert stretch.json()["passages"][0]["text"] == "? since 1871."
    page = client.get("/docs", headers=API).text
    assert all(f"{path}</h2>" in page for path in described["paths"])
    assert "<script" not in page


@pytest.mark.parametrize(
    ("asked", "sent", "status", "told"),
    [
        ("POST /ask", '{"question": 1}', 422, "question: Input should be a valid string"),
        ("POST /ask", "{", 422, "the request: Invalid JSON"),
        ("POST /ask", '{"question": "", "document": 7}', 404, "There is no document 7"),
        ("POST /ask", " " * 1_000_001, 413, "1,000,000 bytes at most"),
        ("GET /ask", "", 405, "takes another method"),
        ("GET /none", "", 404, "/docs lists"),
    ],
)
def test_what_is_asked_wrongly_is_told_in_a_sentence(
    client: TestClient, asked: str, sent: str, status: int, told: str
) -> None:
    """As JSON, with the status of its kind."""
    reply = client.request(*asked.split(), content=sent, headers=API)
    assert reply.status_code == status
    assert told in reply.json()["error"]


def test_a_stage_that_fails_is_told_to_programs(
    client: TestClient, documents: OpenDocuments
) -> None:
    """Which one, and why."""
    documents.sessions[0].stages = Pipeline(Paragraphs(5), object(), BestSentence(), Stuff())
    for path in ("/ask", "/passages"):
        reply = client.post(path, json={"question": "Who?"})
        assert reply.status_code == 422
        assert "the retriever failed" in reply.json()["error"]


@pytest.mark.parametrize("name", ["b.txt", "../../b.txt", "..\\b.txt", "", "..", "\0/", "x" * 999])
def test_a_file_is_taken_in_as_another_document(client: TestClient, name: str) -> None:
    """Whatever its name says, it stays in a folder of its own; its questions are its own."""
    done = client.post("/documents", params={"name": name}, content=b"Ned has a boat.")
    assert done.json()["number"] == 1
    assert client.get("/documents/1/text?start=0&end=99").json()["text"] == "Ned has a boat."
    answer = client.post("/documents/1/ask", content="Who has a boat?").text.splitlines()[-1]
    assert json.loads(answer)["answer"]["told"] == "Ned has a boat."
    assert client.get("/documents/0").json() == []


def test_what_cannot_be_read_or_is_too_large_is_told(client: TestClient) -> None:
    """All files together have a limit, too; the server's folders are not named."""
    broken = client.post("/documents?name=b.pdf", content=b"%PDF-1.7 no more")
    assert broken.status_code == 422
    assert broken.json()["error"].startswith("b.pdf: ")
    assert client.post("/documents?name=b.txt", content=b"x" * 101).status_code == 413
    for status in (200, 413):
        assert client.post("/documents?name=c.txt", content=b"x " * 50).status_code == status


def test_a_port_that_is_taken_is_told(documents: OpenDocuments) -> None:
    """Nothing is bound but to this machine's own address."""
    with pytest.raises(UserError, match="port 99999"):
        serve(documents.sessions[0], 99999)
    assert "no such file" in leporello("serve", "none.txt", status=2).stderr


def test_control_c_ends_it(tmp_path: Path) -> None:
    """With status 0; SIGTERM, after which the test in a browser looks, does the same."""
    path = tmp_path / "a.txt"
    path.write_text("Ned has a boat.", encoding="utf-8")
    with subprocess.Popen(
        command("serve", path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        cwd=ROOT, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:  # fmt: skip
        assert process.stdout
        address = process.stdout.readline().strip()
        with urllib.request.urlopen(address) as page:  # noqa: S310 -- our own
            assert "<title>Leporello</title>" in page.read().decode()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, "ended\n", "")
