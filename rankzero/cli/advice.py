"""What to do about a job that failed, by the cause of its failure."""

from collections.abc import Mapping

RETRY = "rankzero retry {id} (it goes on from its last checkpoint)"

ADVICE: Mapping[str, str] = {
    "config": "correct the field that is named: rankzero clone {id} --set FIELD=VALUE",
    "data": f"correct what is named there, then: {RETRY}; with other data: rankzero clone {{id}} --set data=…",
    "checkpoint": "start from another one, which rankzero checkpoints {id} lists: "
    "rankzero clone {id} --start-from JOB:CHECKPOINT",
    "non_finite_loss": "a lower learning rate, or clipped gradients, from its last checkpoint: "
    "rankzero clone {id} --start-mode resume --set clip_norm=1 --set lr=…",
    "out_of_memory": "a smaller batch, or -1 for the largest that fits: rankzero clone {id} --set batch=-1",
    "disk_full": f"make room where the run writes (rankzero hosts), then: {RETRY}",
    "communication": f"no rank is known to be at fault: look at the network between them, then: {RETRY}",
    "killed_by_signal": f"something outside ended the rank, often the kernel for want of memory (dmesg), then: {RETRY}",
    "exception": f"mend what the traceback names, then: {RETRY}; or with other settings: "
    "rankzero clone {id} --set FIELD=VALUE",
    "device": f"look at the GPU (nvidia-smi -q, dmesg) and at rankzero hosts, then: {RETRY}",
    "hang": f"mend what holds the rank up where its stack says, then: {RETRY}; if it was only slow: "
    "echo 'hang_limit_s: 3600' | rankzero clone {id} - --start-mode resume",
    "time_limit": "with more time: echo 'time_limit_s: 7200' | rankzero clone {id} - --start-mode resume",
    "lost": f"its host or supervisor went away (rankzero hosts); once it is back: {RETRY}",
    "interrupted": f"it was stopped from outside: {RETRY}",
}
"""For each of `trainer.errors.Cause`."""


def advice_on(cause: str, job_id: int) -> str:
    """Return what to do about a job that failed by this cause, which may be one of a later release."""
    return ADVICE.get(cause, f"mend what is said there, then: {RETRY}").format(id=job_id)
