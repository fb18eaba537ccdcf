"""The prompt of `ask`: answers many questions about files that stay loaded."""

import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from leporello.cli.display.answer import show_answer, show_passages
from leporello.cli.options import print_json, print_plain, stderr
from leporello.core.coverage import loss_lines
from leporello.core.environment import process
from leporello.core.errors import UserError
from leporello.runs.ask import Answer, Session

_FAILED = 1
_HISTORY_LINES = 1000  # readline rewrites the complete file at each exit


@dataclass
class Prompt:
    """Reads questions and commands, one per line; output that is not JSON goes to the console."""

    session: Session
    console: Console
    all_passages: bool = False
    as_json: bool = False
    _failed: bool = False

    def run(self) -> int:
        """Answers until the input ends; returns the exit status: 1 if a question failed."""
        is_terminal = sys.stdin.isatty()
        if is_terminal:
            process.handle(lambda number, _: sys.exit(128 + number))
            signal.signal(signal.SIGINT, signal.default_int_handler)  # discards the line only
            _edit_lines(_history() if self.session.settings.cached else None)
            self._greet()
        while (line := self._line(is_terminal)) is not None and line != ":quit":
            try:
                self._execute(line)
            except UserError as error:
                self._report(error, line)
            except KeyboardInterrupt:
                if not is_terminal:
                    raise
                self._print("interrupted; quit with :quit or Ctrl-D")
        # A person has seen the error; only a script needs the status.
        return _FAILED if self._failed and not is_terminal else 0

    def _line(self, is_terminal: bool) -> str | None:
        """Returns the next line of the terminal or file; None at the end."""
        try:
            return input("? " if is_terminal else "").strip()
        except EOFError:
            if is_terminal:
                self.console.print()
            return None
        except KeyboardInterrupt:
            if not is_terminal:
                raise
            self._print("\nquit with :quit or Ctrl-D")
            return ""

    def _execute(self, line: str) -> None:
        command, _, argument = line.partition(" ")
        if not line.startswith(":"):
            if line:
                self._ask(line)
        elif command in _COMMANDS:
            _COMMANDS[command](self, argument.strip())
        else:
            raise UserError(f"{command}: no such command; :help lists them")

    def _ask(self, question: str) -> None:
        answer = self.session.ask(question)
        if self.as_json:
            print_json({"asked": question, **answer.row()}, indent=None)
            return
        if answer.question != question:
            self._print(f"asked: {answer.question}")
        show_answer(self.console, answer, all_passages=self.all_passages)

    def _report(self, error: UserError, line: str) -> None:
        self._failed = True
        if self.as_json:
            print_json({"asked": line, "error": str(error)}, indent=None)
        else:
            print_plain(stderr(), str(error), "red")

    def _print(self, text: str) -> None:
        print_plain(self.console, text, "dim")

    def _greet(self) -> None:
        document = self.session.document
        self._print(f"{document.id}: {len(document.text):,} characters; :help lists commands")
        for text in (*document.notes, *loss_lines(document.losses)):
            self._print(text)
        self._print(_follow_ups(self.session))

    # -- commands --------------------------------------------------------------------------

    def _last(self) -> Answer:
        if not self.session.turns:
            raise UserError("nothing has been asked yet")
        return self.session.turns[-1][1]

    def _passages(self, _: str) -> None:
        """Print every selected passage of the last answer."""
        show_passages(self.console, self._last())

    def _model(self, name: str) -> None:
        """NAME: Answer further questions with this model; names are those of --model."""
        if not name:
            raise UserError(":model needs a name: a path, a hub id, ollama:MODEL, openai:MODEL, …")
        self.session.use_model(name)
        self._print(_follow_ups(self.session))

    def _help(self, _: str) -> None:
        """List the commands."""
        for name, command in _COMMANDS.items():
            self._print(f"{name:<10} {command.__doc__}")
        self._print(":quit      Quit, as Ctrl-D does.")


_COMMANDS: Mapping[str, Callable[[Prompt, str], None]] = {
    ":passages": Prompt._passages,
    ":model": Prompt._model,
    ":help": Prompt._help,
}


def _follow_ups(session: Session) -> str:
    name = type(session.stages.reader).__name__
    if session.follows_up:
        return f"{name} generates text: follow-ups may refer to earlier questions"
    return f"{name} does not generate text: follow-ups cannot refer to earlier questions"


def _history() -> Path:
    from platformdirs import user_state_path

    return user_state_path("leporello", ensure_exists=True) / "questions"


def _edit_lines(history: Path | None) -> None:
    """Enables line editing, and a history of questions that only the user can read."""
    import atexit

    try:
        # Not prompt_toolkit: questions of one line need no completion (decision 37).
        import readline
    except ImportError:  # some builds of Python lack it
        stderr().print("line editing is off: this Python was built without readline")
        return
    if history is None:
        return
    try:
        # Questions can reveal the content of documents.
        history.touch(0o600)
        readline.read_history_file(history)
    except OSError as error:
        print_plain(stderr(), f"{history}: the history is not saved: {error.strerror}")
        return
    readline.set_history_length(_HISTORY_LINES)
    atexit.register(readline.write_history_file, history)
