"""Tests of the server for agents, with the protocol's client and a real process."""

import asyncio
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from command_line import command, leporello

pytestmark = pytest.mark.skipif(find_spec("mcp") is None, reason="needs mcp")
TEXT = "# Office\n\nAnn found the fax.\n\n# Harbour\n\nNed has a boat. \\ud800\n"
NOISY = """
import sys
from dataclasses import dataclass
from leporello.readers import BestSentence

@dataclass(frozen=True)
class Noisy(BestSentence):
    def read(self, inputs):
        print("not the protocol")
        if "fail" in inputs[0].question:
            raise ValueError("no such boat")
        return super().read(inputs)
"""


def test_an_agent_asks_a_document(tmp_path: Path) -> None:
    import mcp  # takes seconds, so not where each process of the tests would import it

    (tmp_path / "noisy.py").write_text(NOISY, "utf-8")
    (tmp_path / "a.md").write_text(TEXT, "utf-8")
    config = tmp_path / "own.yaml"
    config.write_text(
        "pipelines: {own: {extends: best-sentence, reader: {class: './noisy.py:Noisy'}}}"
    )
    program, *arguments = command(
        "mcp", tmp_path / "a.md", "--pipeline", "own", "--config", config, "--no-cache"
    )
    server = mcp.StdioServerParameters(
        command=program, args=arguments, env={"PYTHONPATH": ":".join(filter(None, sys.path))}
    )

    async def talk() -> list[Any]:
        async with mcp.Client(server) as client:
            tools: dict[str, Any] = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert [*tools] == ["ask", "passages", "outline"]
            assert all(tool.annotations.read_only_hint for tool in tools.values())
            assert tools["ask"].input_schema["required"] == ["question"]
            calls: list[tuple[str, dict[str, Any]]] = [
                ("ask", {"question": "Who has a boat?"}),
                ("passages", {"question": "boat", "most": 1}),
                ("outline", {}),
                ("ask", {"question": "Will it fail?"}),
            ]
            return [await client.call_tool(*call) for call in calls]

    *replies, failed = asyncio.run(talk())
    answer, passages, outline = (reply.structured_content for reply in replies)
    assert (answer["answer"], answer["found"]) == ("Ned has a boat.", True)
    assert answer["stands"][0]["place"] == "a.md Harbour"
    assert "boat" in passages["passages"][0]["text"]
    assert [entry["name"] for entry in outline["entries"]] == ["Office", "Harbour"]
    for reply in (answer, passages, outline):
        assert " characters: " in reply["ledger"]["told"][0]
    assert failed.is_error
    assert "the reader failed: ValueError: no such boat" in failed.content[0].text


def test_a_user_error_is_reported_before_the_protocol_starts() -> None:
    process = leporello("mcp", "none.txt", status=2)
    assert (process.stdout, "no such file" in process.stderr) == ("", True)
