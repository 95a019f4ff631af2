"""The tables, one module for each noun. Times are the database's own clock, always UTC.

Whoever imports one has them all: their metadata is that of the whole schema, and their foreign keys need each other.
"""

from jobs.tables.attempts import Attempt, Lease, Placement
from jobs.tables.base import Base
from jobs.tables.hosts import DeviceRow, DeviceSample, Host
from jobs.tables.jobs import Job, JobEvent, SubmissionKey
from jobs.tables.planning import PlanningRound, Quota, Usage
from jobs.tables.results import Checkpoint, LogChunk, Metric

__all__ = [
    "Attempt",
    "Base",
    "Checkpoint",
    "DeviceRow",
    "DeviceSample",
    "Host",
    "Job",
    "JobEvent",
    "Lease",
    "LogChunk",
    "Metric",
    "Placement",
    "PlanningRound",
    "Quota",
    "SubmissionKey",
    "Usage",
]
