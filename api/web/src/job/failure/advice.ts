/** What to do about a job that failed, by the cause of its failure: what the command `rankzero why` advises, for this page. */

const RETRY = "then retry it: it goes on from its last checkpoint"

/** For each cause of the trainer (`trainer/errors.py`). */
const ADVICE: Record<string, string> = {
  config: "Clone it, and correct the field that is named.",
  data: `Correct what is named there, ${RETRY}. Or clone it with other data.`,
  checkpoint: "Clone it with another checkpoint to start from.",
  non_finite_loss:
    "Start a new job from its last good checkpoint, with a lower learning rate or with clipped gradients (clip_norm).",
  out_of_memory: "Clone it with a smaller batch, or with batch -1 for the largest that fits.",
  disk_full: `Make room where the run writes, ${RETRY}.`,
  communication: `No rank is known to be at fault. Look at the network between them, ${RETRY}.`,
  killed_by_signal: `Something outside ended the rank, often the kernel for want of memory. Look at dmesg, ${RETRY}.`,
  exception: `Mend what the traceback names, ${RETRY}. Or clone it with other settings.`,
  device: `Look at the GPU (nvidia-smi -q, dmesg) and at the hosts, ${RETRY}.`,
  hang: `Mend what holds the rank up where its stack says, ${RETRY}. If it was only slow, clone it with a longer hang_limit_s.`,
  time_limit: "Clone it with a longer time_limit_s, from its last checkpoint.",
  lost: `Its host or supervisor went away. Once it is back, ${RETRY.replace("then ", "")}.`,
  interrupted: "It was stopped from outside. Retry it: it goes on from its last checkpoint.",
}

/** A cause may be one of a later release. */
export function adviceOn(cause: string): string {
  return ADVICE[cause] ?? `Mend what is said there, ${RETRY}.`
}
