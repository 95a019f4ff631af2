"""The example of docs/planning.md is what the planner decides."""

from jobs.planner.plan import plan
from jobs.planner.view import Policy
from tests.unit.planner.drawing import host, job, run, scene, starts, waits

MINUTE = 60.0
TEN = 10 * 60 * MINUTE


def test_the_example_of_the_planning_page_is_what_the_planner_decides() -> None:
    waiting = [
        job(8, 4, waits_from=TEN - 60 * MINUTE),
        job(9, 1, waits_from=TEN - 30 * MINUTE, duration_s=20 * MINUTE),
        job(10, 1, waits_from=TEN - 20 * MINUTE),
        job(11, 2, waits_from=TEN - 5 * MINUTE, duration_s=15 * MINUTE, priority=60),
    ]
    running = [run(7, 1, predicted_end=TEN + 30 * MINUTE)]
    decisions = plan(scene(host(cuda=4), waiting, running, now=TEN, policy=Policy(ageing_s=600)))

    assert starts(decisions) == {11: [("alpha", ["cuda:1", "cuda:2"])], 9: [("alpha", ["cuda:3"])]}
    waiting_ones = waits(decisions)
    assert waiting_ones[8].predicted_start == TEN + 30 * MINUTE
    assert waiting_ones[8].reservation is not None
    assert waiting_ones[8].reservation.device_ids == (1, 2, 3, 4)
    assert waiting_ones[8].line_key == TEN - 60 * MINUTE - 500 * MINUTE
    assert waiting_ones[10].reason == "waits for cuda:0 (job 7, then job 8) on alpha; how long job 8 runs is not known"
    assert [each.job_id for each in decisions if each.job_id != 7] == [11, 8, 9, 10]
