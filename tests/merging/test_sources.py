import torch

from gtr_turbo.merging.sources import InMemory, checkpoint_label


def test_a_mapping_is_a_source() -> None:
    weight = torch.nn.Parameter(torch.zeros(2, 3))
    source = InMemory({"w": weight, "v": weight.data[0]}, "mine")
    assert (source.label, source.names()) == ("mine", ("w", "v"))
    assert (source.shape("w"), source.dtype("w")) == ((2, 3), torch.float32)
    assert not source.read("w").requires_grad
    assert source.read("w").data_ptr() == weight.data_ptr()
    assert source.storage("w") != source.storage("v")


def test_labels_read_well_in_a_sentence() -> None:
    assert checkpoint_label("checkpoint-3") == "checkpoint-3"
    assert checkpoint_label("update-0003") == 'checkpoint "update-0003"'
