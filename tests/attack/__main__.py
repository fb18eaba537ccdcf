"""`python -m tests.attack`."""

import signal

from tests.attack.program import main

if __name__ == "__main__":
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup what it starts would take none
    main()
