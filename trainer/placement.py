"""Whether a placement can run what it is given: nodes, strategy and batch against its devices. Never imports torch."""

from trainer.config import SCRIPT
from trainer.devices import check_batch, check_strategy
from trainer.errors import ConfigError
from trainer.run_dir import RunConfig
from trainer.script.options import script_options


def check_placement(config: RunConfig) -> None:
    """Raise ConfigError, naming the field and the way out, for what no launcher can run."""
    _check_nodes(config)
    if config.train.recipe == SCRIPT:
        _check_script(config)
        return
    check_strategy(config.train.strategy, config.devices, nnodes=config.nnodes)
    check_batch(config.train, config.devices, nnodes=config.nnodes)


def _check_script(config: RunConfig) -> None:
    script_options(config.train)
    if config.nnodes > 1:
        raise ConfigError(
            f"nnodes: recipe script runs on one node, and nnodes is {config.nnodes}; for several, start the program "
            "itself on each with torchrun"
        )


def _check_nodes(config: RunConfig) -> None:
    if config.node_rank > 0 and config.nnodes == 1:
        raise ConfigError(
            f"nnodes: node_rank is {config.node_rank}, and nnodes, the number of nodes that train together, is 1; give "
            "it as well, the same on every node"
        )
    if config.node_rank >= config.nnodes:
        raise ConfigError(
            f"node_rank: {config.node_rank} is none of the {config.nnodes} nodes; they are numbered from 0, and nnodes "
            "says how many there are"
        )
    if config.nnodes > 1 and config.master_port == 0:
        raise ConfigError(
            f"master_port: {config.nnodes} nodes meet at a port of node 0 that all are told; name a free one, the same "
            "on every node"
        )
