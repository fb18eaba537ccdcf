"""The prompt of `ask`: question after question about files that stay loaded."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.console import Console

from leporello.cli.display.answer import show_answer, show_passages
from leporello.cli.options import stderr
from leporello.core.coverage import loss_lines
from leporello.core.environment import signals
from leporello.core.errors import UserError
from leporello.runs.ask import Answer, Session

_FAILED = 1
_KEPT = 1000  # lines of history


@dataclass
class Prompt:
    """Takes questions and commands, a line each, from whatever standard input is.

    Attributes:
        session: Conversation that answers.
        console: Console for what is no JSON.
        all_passages: Whether every passage is shown of each answer.
        as_json: Whether answers are JSON, a line each.
    """

    session: Session
    console: Console
    all_passages: bool = False
    as_json: bool = False
    _failed: bool = False

    def run(self) -> int:
        """Answers until the input ends; returns the exit status: 1 if a question had no answer."""
        person = sys.stdin.isatty()
        if person:
            signals.handle(lambda number, _: sys.exit(128 + number))
            signal.signal(signal.SIGINT, signal.default_int_handler)  # drops a line, not the verb
            _edit_lines(_history() if self.session.settings.cached else None)
            self._greet()
        while (line := self._line(person)) is not None and line != ":quit":
            try:
                self._do(line)
            except UserError as error:
                self._tell(error, line)
            except KeyboardInterrupt:
                if not person:
                    raise
                self._say("interrupted; :quit or Ctrl-D leaves")
        return _FAILED if self._failed and not person else 0

    def _line(self, person: bool) -> str | None:
        """Returns what was typed, or the next line of a file; None at the end."""
        try:
            return input("? " if person else "").strip()
        except EOFError:
            if person:
                self.console.print()
            return None
        except KeyboardInterrupt:
            if not person:
                raise
            self._say("\n:quit or Ctrl-D leaves")
            return ""

    def _do(self, line: str) -> None:
        command, _, rest = line.partition(" ")
        if not line.startswith(":"):
            if line:
                self._ask(line)
        elif command in _COMMANDS:
            _COMMANDS[command](self, rest.strip())
        else:
            raise UserError(f"{command}: there is no such command; :help lists them")

    def _ask(self, question: str) -> None:
        answer = self.session.ask(question)
        if self.as_json:
            typer.echo(json.dumps({"asked": question, **answer.row()}, ensure_ascii=False))
            return
        if answer.question != question:
            self._say(f"asked: {answer.question}")
        show_answer(self.console, answer, all_passages=self.all_passages)

    def _tell(self, error: UserError, line: str) -> None:
        self._failed = True
        if self.as_json:
            typer.echo(json.dumps({"asked": line, "error": str(error)}, ensure_ascii=False))
        else:
            stderr().print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)

    def _say(self, text: str) -> None:
        self.console.print(text, style="dim", markup=False, highlight=False, soft_wrap=True)

    def _greet(self) -> None:
        document = self.session.document
        self._say(f"{document.id}: {len(document.text):,} characters; :help lists commands")
        for text in (*document.notes, *loss_lines(document.losses)):
            self._say(text)
        self._say(_follow_ups(self.session))

    # -- commands --------------------------------------------------------------------------

    def _last(self) -> Answer:
        if not self.session.turns:
            raise UserError("nothing has been asked yet")
        return self.session.turns[-1][1]

    def _passages(self, _: str) -> None:
        """Every passage that was selected for the last question."""
        show_passages(self.console, self._last())

    def _ledger(self, _: str) -> None:
        """What became of the whole file, and what of it is no text."""
        for text in self._last().ledger:
            self._say(text)

    def _model(self, name: str) -> None:
        """NAME: has another model read from here on, as --model names it."""
        if not name:
            raise UserError(":model takes a name: a path, a hub id, ollama:MODEL, openai:MODEL, …")
        self.session.use_model(name)
        self._say(_follow_ups(self.session))

    def _why(self, _: str) -> None:
        """What was asked, what was selected, and what the stages noted."""
        answer = self._last()
        self._say(f"asked     {answer.question or '(nothing)'}")
        self._say(f"stages    {self.session.stages}")
        for rank, passage in enumerate(answer.passages, 1):
            read = "read" if passage.read else "not read"
            self._say(f"selected  {rank}. {passage.place}, score {passage.score:g}, {read}")
        for text in answer.notes:
            self._say(f"note      {text}")

    def _help(self, _: str) -> None:
        """Lists this."""
        for name, command in _COMMANDS.items():
            self._say(f"{name:<10} {command.__doc__}")
        self._say(":quit      Leaves, as Ctrl-D does.")


_COMMANDS: Mapping[str, Callable[[Prompt, str], None]] = {
    ":passages": Prompt._passages,
    ":ledger": Prompt._ledger,
    ":model": Prompt._model,
    ":why": Prompt._why,
    ":help": Prompt._help,
}


def _follow_ups(session: Session) -> str:
    name = type(session.stages.reader).__name__
    if session.follows_up:
        return f"{name} writes: a follow-up is understood by the questions before it"
    return f"{name} does not write: each question stands alone"


def _history() -> Path:
    from platformdirs import user_state_path

    return user_state_path("leporello", ensure_exists=True) / "questions"


def _edit_lines(history: Path | None) -> None:
    """Has lines edited, and those of earlier prompts kept, which nobody else may read."""
    import atexit

    try:
        import readline
    except ImportError:  # some builds of Python lack it
        stderr().print("lines cannot be edited: this Python was built without readline")
        return
    if history is None:
        return
    try:
        history.touch(0o600)
        readline.read_history_file(history)
    except OSError as error:
        stderr().print(f"{history}: questions are not kept: {error.strerror}", markup=False)
        return
    readline.set_history_length(_KEPT)
    atexit.register(readline.write_history_file, history)
