"""Start-up hook of a host's Python processes: their wall clock is set forward or back while they run.

The file that CLOCK_FILE names says by how many seconds; the process looks at it 20 times a second. The calls of Python
are set (`time.time`, `datetime.now`, `time.clock_gettime`); the kernel's clock, and so the times of files, are not, and
neither are the clocks that nobody can set. This is no part of the tests' package: it runs before any program does.
"""

import os
import threading
import time
from pathlib import Path
from typing import Any

import time_machine  # at the start, while this is alone: of two threads that import, one may get a module half made

LOOK_EVERY_S = 0.05


def follow(file: Path) -> None:
    """Set this process's clock to what the file says, again and again."""
    traveller: Any = None
    set_by = 0.0
    while True:
        by = float(file.read_text() or 0)
        if by != set_by:
            if traveller is not None:
                traveller.stop()
            traveller = time_machine.travel(time.time() + by, tick=True)
            traveller.start()
            set_by = by
        time.sleep(LOOK_EVERY_S)


threading.Thread(target=follow, args=[Path(os.environ["CLOCK_FILE"])], name="clock", daemon=True).start()
