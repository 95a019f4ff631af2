"""`python -m trainer`."""

from trainer.interrupting import die_of_interrupts
from trainer.parent_death import die_with_parent

if __name__ == "__main__":
    die_of_interrupts()
    die_with_parent()
    from trainer.command import main

    main()
