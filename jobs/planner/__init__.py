"""The planner: a pure function from jobs, hosts, leases and the time to what happens next."""
