"""The tables, one module for each noun. Times are the database's own clock, always UTC.

Whoever imports one has them all: their metadata is that of the whole schema, and their foreign keys need each other.
"""

from jobs.tables.access import AuditEvent, Secret, Token, User
from jobs.tables.attempts import Attempt, Lease, Placement
from jobs.tables.base import Base
from jobs.tables.feed import FeedEntry
from jobs.tables.hosts import DeviceRow, DeviceSample, Host
from jobs.tables.jobs import Job, JobEvent, SubmissionKey
from jobs.tables.planning import PlanningRound, Quota, Usage
from jobs.tables.results import Checkpoint, LogChunk, Metric, MetricBucket
from jobs.tables.webhooks import Delivery, DeliveryTry, Webhook

__all__ = [
    "Attempt",
    "AuditEvent",
    "Base",
    "Checkpoint",
    "Delivery",
    "DeliveryTry",
    "DeviceRow",
    "DeviceSample",
    "FeedEntry",
    "Host",
    "Job",
    "JobEvent",
    "Lease",
    "LogChunk",
    "Metric",
    "MetricBucket",
    "Placement",
    "PlanningRound",
    "Quota",
    "Secret",
    "SubmissionKey",
    "Token",
    "Usage",
    "User",
    "Webhook",
]
