"""`python -m rankzero.cli`: the command without its entry point on PATH."""

from rankzero.cli.app import main

main()
