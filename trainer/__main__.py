"""`python -m trainer`."""

import signal

from trainer.parent_death import die_with_parent

if __name__ == "__main__":
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Where nobody has begun to listen, a Ctrl-C ends the program as it does any other: without a traceback.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    die_with_parent()
    from trainer.command import main

    main()
