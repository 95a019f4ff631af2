"""Checkpoint roots: which URLs can name one at all. Whether one can be written only its hosts find out."""


def refuse_unknown(root: str) -> None:
    """Raise ValueError for a URL whose scheme fsspec knows no implementation of; any other path passes."""
    if "://" not in root:
        return
    # Late: most roots are folders. None of the implementations is imported: their packages are the hosts' business.
    from fsspec import available_protocols

    known = set(available_protocols())
    for link in root.split("::"):  # such as simplecache::s3://bucket
        scheme = link.partition("://")[0]
        if scheme not in known:
            raise ValueError(
                f"{root!r} is of no scheme that fsspec knows ({scheme}://); give the URL of an object store, such as "
                "s3://bucket/runs, or the absolute path of a folder that the hosts share"
            )
