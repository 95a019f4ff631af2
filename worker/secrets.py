"""Secrets: opened for the launcher of one run, when it starts, and kept nowhere."""

from collections.abc import Callable, Mapping

from jobs.database import Database
from jobs.errors import NoKeyError
from jobs.sealing import unseal
from jobs.store import secrets
from trainer.errors import ConfigError
from worker.link import patiently


def opened(database: Database, named: Mapping[str, str], *, until: Callable[[], float]) -> dict[str, str]:
    """Return the variables with what their secrets hold; `named` has the name of each one's secret.

    Waits for a database that is away, until `until` on the link's clock. Raises ConfigError, which names no secret's
    content, where one is not there any more or this host cannot open it.
    """
    if not named:
        return {}
    sealed = patiently(database, lambda session: secrets.sealed(session, named.values()), until=until())
    variables = {}
    for variable, name in named.items():
        if name not in sealed:
            raise ConfigError(f"secrets.{variable}: there is no secret {name} any more")
        try:
            variables[variable] = unseal(sealed[name])
        except NoKeyError as error:
            raise ConfigError(f"secrets.{variable}: {error}") from error
    return variables
