"""The service's own log: one JSON object a line on standard error."""

import logging
import sys

import structlog

from jobs.settings import get_settings


def configure_logs() -> None:
    """Set up structlog for this process; context bound anywhere is part of every line after it."""
    level = logging.getLevelNamesMapping().get(get_settings().log_level.upper(), logging.INFO)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.dict_tracebacks,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
