"""A host: the Celery worker, its tick, the registration of its devices, and the supervisor of one placement."""
