"""The command line, as ``dovetail`` or ``python -m dovetail``."""

import signal
import sys

from . import _dovetail


def main() -> None:
    # as the program itself: Ctrl-C ends what runs, a reader that has gone away is no error
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_dovetail.program(sys.argv[1:]))


if __name__ == "__main__":
    main()
