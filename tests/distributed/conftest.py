"""What the distributed tests share: drawn images, and a data root of their own."""

from pathlib import Path

import pytest

from tests.distributed.runs import draw_images


@pytest.fixture(scope="session")
def data_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where known data sets are written, for all tests of this process."""
    return tmp_path_factory.mktemp("data-root")


@pytest.fixture(autouse=True)
def _own_data_root(data_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKZERO_DATA_ROOT", str(data_root))


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """41 training and 9 validation images of two classes: at batch 8, the last batch is a single image."""
    return draw_images(tmp_path_factory.mktemp("images"), train=41, val=9)
