"""An example of each body, by operation and name: what `/docs` fills in, and what generated clients show."""

from typing import Any

BODIES: dict[str, dict[str, Any]] = {
    "submit_job": {
        "two GPUs": {
            "name": "cifar-resnet50",
            "device": "0,1",
            "priority": 60,
            "labels": {"team": "vision"},
            "train": {"model": "resnet50", "data": "cifar10", "epochs": 100, "batch": 256, "lr": 0.1, "amp": "bf16"},
        },
        "two ranks on a CPU": {
            "device": "cpu",
            "nproc_per_node": 2,
            "train": {"model": "resnet18", "data": "digits", "epochs": 3, "batch": 64},
        },
    },
    "plan_job": {"any two GPUs": {"device": {"count": 2}, "train": {"model": "resnet50", "data": "cifar10"}}},
    "resume_job": {"on other devices": {"device": "2,3"}},
    "change_job": {"in front of others": {"priority": 90, "labels": {"reviewed": "yes", "draft": None}}},
    "clone_job": {"with another learning rate": {"changes": {"name": "lower-lr", "train": {"lr": 0.01}}}},
    "prune_checkpoints": {"the best and the last stay": {"keep": ["best", "last"]}},
    "quarantine_device": {"after errors of its memory": {"reason": "uncorrectable ECC errors"}},
    "drain_host": {"for an upgrade": {"note": "new driver", "evict": True}},
    "create_user": {"who submits": {"name": "alice", "role": "submitter"}},
    "change_user": {"who has left": {"disabled": True}},
    "create_token": {"for a pipeline": {"name": "nightly pipeline", "user": "alice", "role": "submitter"}},
    "put_secret": {"a token of a model hub": {"value": "hf_0123456789"}},
    "create_webhook": {
        "the ends of a team's jobs": {
            "url": "https://hooks.example/rankzero",
            "topics": ["job.succeeded", "job.failed"],
            "labels": {"team": "vision"},
        }
    },
    "change_webhook": {"off for now": {"enabled": False}},
    "put_quota": {"eight devices": {"max_devices": 8, "share": 2.0}},
}
