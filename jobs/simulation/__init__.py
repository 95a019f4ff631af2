"""The planner tried on a stream of jobs: the very function that the service plans with, and a clock that jumps."""
