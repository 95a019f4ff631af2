"""Takes the place of the package wandb in a program that runs with `wandb_shim`: this folder is on its search path.

No package: it is found by the bare name, in the program and in every Python process that it starts.
"""

import sys

from rankzero import wandb

sys.modules[__name__] = wandb
