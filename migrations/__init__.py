"""Alembic's scripts: the way from an empty database to `jobs.tables`. A landed revision is never edited."""
