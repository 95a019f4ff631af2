"""What a job is: its spec, its states, its rows and every query on them. Imports no torch, no web, no queue."""
