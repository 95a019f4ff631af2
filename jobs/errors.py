"""The errors that the store and the planner raise."""


class JobError(Exception):
    """Base of every error that this package raises on purpose."""


class NotFoundError(JobError):
    """No such job, attempt or host; the message names it."""


class ForbiddenError(JobError):
    """The principal may not do this; says who may. Nothing was written."""


class InvalidSpecError(JobError, ValueError):
    """A spec that parses but cannot run anywhere; names the field and the way out."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


class InvalidChangesError(JobError, ValueError):
    """Changes that make no valid spec of a stored one; its cause is the ValidationError that names each field."""


class StateConflictError(JobError):
    """The state of the job or host does not allow what was asked for; names it and the way out. Nothing was written."""


class FileElsewhereError(StateConflictError):
    """A file that is there, and that this process cannot read; says where it is."""

    def __init__(self, message: str, *, host: str, path: str, copy_url: str | None) -> None:
        super().__init__(message)
        self.location = {"host": host, "path": path, "copy_url": copy_url}


class KeyReusedError(JobError, ValueError):
    """An idempotency key that was given to another request before. Nothing was written."""


class NoKeyError(JobError):
    """The service has no key for its secrets, or not the right one; names the file and the way out."""


class InvalidFilterError(JobError, ValueError):
    """A filter, sort or cursor that is not one; names the parameter."""

    def __init__(self, parameter: str, message: str) -> None:
        super().__init__(f"{parameter}: {message}")
        self.parameter = parameter
        self.message = message


class IllegalTransitionError(JobError):
    """A state change outside TRANSITIONS: an invariant of ours is broken, nothing was written."""


class InvalidSettingsError(JobError, ValueError):
    """Settings that cannot be; one line names each variable and what is wrong with it."""


class SchemaMissingError(JobError):
    """The database lacks the schema of this version; says what makes it."""

    def __init__(self) -> None:
        super().__init__("the database lacks this version's schema; run: python -m jobs.database upgrade")


class HostNameTakenError(JobError):
    """Another worker that is alive has this host's name: two under one name would end each other's runs."""


class OffsetsMovedError(JobError):
    """More of a placement's files is shipped than the writer knew: its last answer was lost. Nothing was written."""


class StaleAttemptError(JobError):
    """The writer's attempt has ended or was never the holder: nothing was written, and the writer must stop."""
