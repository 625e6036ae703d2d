"""What holds for every test: no downloads, one thread, reproducible examples, GPU tests skipped."""

import os

# Before torch, tokenizers or huggingface_hub are imported by anyone.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ["HF_HUB_OFFLINE"] = "1"

import hypothesis
import pytest

hypothesis.settings.register_profile("suite", deadline=None, derandomize=True, max_examples=50)
hypothesis.settings.load_profile("suite")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests marked `gpu` where there is no CUDA device."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if not marked:
        return
    import torch

    if torch.cuda.is_available():
        return
    for item in marked:
        item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))
