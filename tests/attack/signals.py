"""A run is sent signals at random moments; then the same command goes on.

It ends soon with the status of its first signal, leaves nothing running and no torn file; the same
command comes to the bytes of an uninterrupted run.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from signal import Signals

from tests.attack.command import Done, Started, leporello, wrong
from tests.attack.stores import different, given, whole

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
_READ = "0.02"  # seconds a window
_LONGEST = 8.0  # seconds until the first signal
_START = 0.15  # seconds of computing that are Python's own start, which a signal ends its own way
_TICKS = 100


@dataclass(frozen=True)
class Signalled:
    """Signals at moments.

    Attributes:
        sent: Signals, each with the seconds to wait before it.
        options: Of the command.
    """

    sent: tuple[tuple[float, Signals], ...]
    options: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """In a line."""
        told = ", ".join(f"{number.name} after {wait:.2f} s" for wait, number in self.sent)
        return f"{told} {' '.join(self.options)}"

    @property
    def command(self) -> str:
        """Without what comes of chance."""
        waits = " ".join(f"sleep {wait}; kill -{number.name[3:]} $!;" for wait, number in self.sent)
        line = " ".join(given(("run",), *self.options))
        return f"LAMP_SECONDS={_READ} leporello {line} & {waits} wait $!; echo $?"

    def run(self, folder: Path) -> str | None:
        """Sends them, and goes on."""
        whole()
        started = Started(folder, *given(("run",), *self.options), LAMP_SECONDS=_READ)
        allowed = {1}  # it had ended by itself: some reads fail, always
        for number, (wait, sent) in enumerate(self.sent):
            if not started.lasts(wait):
                break
            if not number:
                allowed = {-sent} if sent == signal.SIGKILL else {128 + sent, 1}
                if _computed(started.number) < _START:
                    allowed |= {-sent}
            if sent == signal.SIGKILL:
                allowed |= {-sent}
            elif not wait:  # of two that wait to be taken, the system chooses
                allowed |= {128 + sent}
            started.send(sent)
        done = started.end(60)
        if told := wrong(_own(done), *allowed):
            return told
        again = leporello(folder, *given(("run",), *self.options))
        if told := wrong(again, 1):
            return f"going on: {told}"
        return different(folder / "out")


def _own(done: Done) -> Done:
    """Returns it without what a killed driver leaves: workers that find out a little later."""
    return replace(done, is_left=False) if done.status == -signal.SIGKILL else done


def _computed(process: int) -> float:
    """Returns how long a process has computed, in seconds."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has ended, or there is no such file on this system
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


def case(random: Random, number: int) -> Signalled:
    """Each signal in turn, once or twice, also soon after another."""
    first = _SIGNALS[number % len(_SIGNALS)]
    sent = [(random.uniform(0, _LONGEST), first)]
    if random.random() < 0.4:
        second = random.choice((first, random.choice(_SIGNALS)))
        sent.append((random.choice((0.0, random.uniform(0, 0.5))), second))
    options = random.choice(
        (("--workers", "1"), ("--workers", "0", "--unsupervised"), ("--workers", "2"))
    )
    return Signalled(tuple(sent), options)
