"""All faults of the matrix, in the order of the table."""

from tests.faults.matrix import clients, clocks, disks, networks, nodes, ranks, restarts, servers, supervisors, workers

FAULTS = (
    *workers.FAULTS,
    *supervisors.FAULTS,
    *ranks.FAULTS,
    *nodes.FAULTS,
    *restarts.FAULTS,
    *servers.FAULTS,
    *clients.FAULTS,
    *networks.FAULTS,
    *disks.FAULTS,
    *clocks.FAULTS,
)
