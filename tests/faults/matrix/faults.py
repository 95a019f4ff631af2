"""All faults of the matrix, in the order of the table."""

from tests.faults.matrix import clients, networks, ranks, servers, supervisors, workers

FAULTS = (*workers.FAULTS, *supervisors.FAULTS, *ranks.FAULTS, *servers.FAULTS, *clients.FAULTS, *networks.FAULTS)
