"""All faults of the matrix, in the order of the table."""

from tests.faults.matrix import processes

FAULTS = (*processes.FAULTS,)
