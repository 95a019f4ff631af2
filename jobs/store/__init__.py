"""Every query of the service. Each function takes a session first and leaves the commit to its scope."""
