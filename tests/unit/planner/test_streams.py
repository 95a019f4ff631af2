"""Nobody starves: small random streams, planned again and again, in which every job starts within the bound.

`--streams 10000` plays as many; by default there are a few hundred.
"""

import pytest

from tests.unit.planner.streams import Stream

PARTS = 10


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(PARTS))
def test_every_job_of_a_random_stream_starts_within_the_bound(part: int, request: pytest.FixtureRequest) -> None:
    streams = request.config.getoption("--streams")
    for seed in range(part, streams, PARTS):
        stream = Stream(seed)
        stream.play()
        step = stream.longest_foretold_s + 2 * stream.longest_run_s
        assert max(stream.waits_of_heads, default=0) <= step, (
            f"stream {seed}: the first in the line was passed too long"
        )
        if stream.traffic.closes or stream.traffic.has_quotas:
            continue  # the bound is for open hosts and for quotas that have room
        for number, run in stream.runs.items():
            waited = run.starts[0] - run.job.waits_from
            assert waited <= stream.bound_s(number) + 1e-6, f"stream {seed}: job {number} waited {waited} s"
