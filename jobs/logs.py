"""The service's own log: one JSON object a line on standard error, whoever writes it."""

import logging
import sys
from contextlib import suppress

import structlog

from jobs.redaction import redact_line
from jobs.settings import get_settings

_SHARED: list[structlog.typing.Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def configure_logs() -> None:
    """Set up logging for this process; context bound anywhere is part of every line after it.

    What libraries log by the standard library, and Python's warnings, take the same form; theirs from WARNING on.
    """
    level = logging.getLevelNamesMapping().get(get_settings().log_level.upper(), logging.INFO)
    render: list[structlog.typing.Processor] = [
        # Without local variables, as they are by default: tokens and secrets are among them.
        structlog.processors.ExceptionRenderer(structlog.tracebacks.ExceptionDictTransformer(show_locals=False)),
        structlog.processors.JSONRenderer(),
        redact_line,
    ]
    structlog.configure(
        processors=[*_SHARED, *render],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=_StandardError,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    remove_meta = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(foreign_pre_chain=_SHARED, processors=[remove_meta, *render])
    )
    logging.captureWarnings(capture=True)
    logging.basicConfig(handlers=[handler], level=max(level, logging.WARNING), force=True)


class _StandardError(structlog.WriteLogger):
    """Standard error; a line that it does not take is lost, and no more than that.

    A supervisor's is a file beside its run. When the disk is full it has to go on all the same: it would else leave
    its lease to run out, or the end of its run untold, for want of a line about it.
    """

    def __init__(self, *_: object) -> None:
        super().__init__(sys.stderr)

    def msg(self, message: str) -> None:
        """Write a line."""
        with suppress(OSError):
            super().msg(message)

    debug = info = warning = error = critical = msg
