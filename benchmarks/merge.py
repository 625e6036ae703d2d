"""What the next merge costs: ours, mergekit and PEFT on the same checkpoints, each a whole process.

    python benchmarks/merge.py --json table.json --svg plot.svg

Makes a base and K bfloat16 checkpoints of a Llama of `--millions` parameters, then lets every
contestant merge them by TIES at density 0.8 and measures CPU seconds, wall seconds and peak memory
of the process, its start and imports included (the first line says what those are). "next" is what
a training run pays for its K-th teacher: K-1 checkpoints are in the sums, one is added, the merged
model and the new sums are written; it needs no torch. mergekit can live in another interpreter
(`--mergekit-python`). With GTR_TURBO_NATIVE=1 the optional C loops are used; they are built before
anything is timed.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from merge_plot import svg  # pyright: ignore[reportImplicitRelativeImport]  a script beside it

# The measuring process stays small: the peak memory of a child counts from the size of its parent
# at the fork. So what needs torch runs in children and imports it there.

DENSITY = 0.8
LAYER_7B = {
    "q_proj": (3584, 3584),
    "k_proj": (512, 3584),
    "v_proj": (512, 3584),
    "o_proj": (3584, 3584),
    "gate_proj": (18944, 3584),
    "up_proj": (18944, 3584),
    "down_proj": (3584, 18944),
}
NUM_LAYERS_7B = 28
RANK_7B = 128


# ---- checkpoints ----


def llama_shapes(millions: float) -> tuple[dict[str, tuple[int, ...]], dict[str, Any]]:
    """Return tensor shapes and configuration of a tied Llama of about `millions` parameters."""
    hidden = max(64, int((millions / 110) ** 0.5 * 768) // 64 * 64)
    vocabulary, layers, inner = 32_000 * hidden // 768, 12, 8 * hidden // 3
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (vocabulary, hidden)}
    for layer in range(layers):
        for name in "qkvo":
            shapes[f"model.layers.{layer}.self_attn.{name}_proj.weight"] = (hidden, hidden)
        for name in ("gate", "up"):
            shapes[f"model.layers.{layer}.mlp.{name}_proj.weight"] = (inner, hidden)
        shapes[f"model.layers.{layer}.mlp.down_proj.weight"] = (hidden, inner)
        for name in ("input", "post_attention"):
            shapes[f"model.layers.{layer}.{name}_layernorm.weight"] = (hidden,)
    shapes["model.norm.weight"] = (hidden,)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": hidden // 64,
        "num_key_value_heads": hidden // 64,
        "vocab_size": vocabulary,
        "tie_word_embeddings": True,
        "dtype": "bfloat16",
    }
    return shapes, config


def write_checkpoints(root: Path, millions: float, num: int, step: float = 1e-4) -> int:
    """Write base and `num` checkpoints of a walk with drift; returns the number of parameters."""
    import torch

    from gtr_turbo.merging.safetensors_files import TensorWriter

    shapes, config = llama_shapes(millions)
    announced = {name: (torch.bfloat16, shape) for name, shape in shapes.items()}
    directories = [root / "base", *(root / f"step-{index}" for index in range(num))]
    writers = []
    for directory in directories:
        directory.mkdir(parents=True)
        (directory / "config.json").write_text(json.dumps(config))
        writers.append(TensorWriter(directory / "model.safetensors", announced))
    generator = torch.Generator().manual_seed(0)
    for name, shape in shapes.items():
        at = 0.02 * torch.randn(shape, generator=generator)
        drift = step * torch.randn(shape, generator=generator)
        for writer in writers:
            writer.write(name, at.to(torch.bfloat16))
            at = at + drift + step * torch.randn(shape, generator=generator)
    for writer in writers:
        writer.finish()
        writer.__exit__(None, None, None)
    return sum(torch.Size(shape).numel() for shape in shapes.values())


# ---- what the child processes do ----


def child_write(arguments: list[str]) -> None:
    """Write base and checkpoints and print the number of parameters: ROOT MILLIONS NUM."""
    print(write_checkpoints(Path(arguments[0]), float(arguments[1]), int(arguments[2])))


def child_start(_: list[str]) -> None:
    """Import what the next merge imports, and do nothing."""
    import gtr_turbo.merging.arrays.merge
    import gtr_turbo.merging.arrays.sources  # noqa: F401


def child_torch(_: list[str]) -> None:
    """Import what a merge of tensors imports, and do nothing."""
    from gtr_turbo.merging import run_merge  # noqa: F401


def child_scratch(arguments: list[str]) -> None:
    """Merge all checkpoints from the beginning: ROOT K OUT."""
    from gtr_turbo.merging import MergeRequest, run_merge
    from gtr_turbo.merging.directories import no_progress

    root, num, out = Path(arguments[0]), int(arguments[1]), Path(arguments[2])
    paths = tuple(root / f"step-{index}" for index in range(num))
    run_merge(MergeRequest(checkpoints=paths, base=root / "base", out=out), no_progress)


def child_next(arguments: list[str]) -> None:
    """Add checkpoints FIRST to LAST to the sums in STATE, writing the merged model to OUT."""
    from gtr_turbo.merging.arrays.files import ArrayWriter
    from gtr_turbo.merging.arrays.merge import ArrayMerge
    from gtr_turbo.merging.arrays.sources import ArrayFiles
    from gtr_turbo.merging.settings import MergeSettings, TiesOptions

    root, state, out = Path(arguments[0]), Path(arguments[1]), Path(arguments[2])
    settings = MergeSettings(
        method="ties", density=DENSITY, scale=1.0, decay=None, window=None, options=TiesOptions()
    )
    base = ArrayFiles(root / "base")
    announced = {name: (base.kind(name), base.shape(name)) for name in base.names()}
    for index in range(int(arguments[3]), int(arguments[4]) + 1):
        merge = ArrayMerge(state, settings)
        with ArrayWriter(out, announced) as writer:
            for name, array in merge.add(base, ArrayFiles(root / f"step-{index}")):
                writer.write(name, array)
            writer.finish()


def child_peft(arguments: list[str]) -> None:
    """Merge by PEFT's own function on full changes, one tensor at a time: ROOT K OUT."""
    import torch
    from peft.utils.merge_utils import ties
    from safetensors import safe_open
    from safetensors.torch import save_file

    root, num, out = Path(arguments[0]), int(arguments[1]), Path(arguments[2])
    files = [root / "base", *(root / f"step-{index}" for index in range(num))]
    opened = [safe_open(path / "model.safetensors", "pt") for path in files]
    merged = {}
    for name in opened[0].keys():  # noqa: SIM118
        base = opened[0].get_tensor(name).float()
        changes = [own.get_tensor(name).float() - base for own in opened[1:]]
        change = ties(changes, torch.ones(num), DENSITY)
        merged[name] = (base + change).to(torch.bfloat16)
    save_file(merged, out)


def child_floor(_: list[str]) -> None:
    """Print nanoseconds per byte of a copy and of an accumulation of 45 million changes."""
    import torch

    from gtr_turbo.merging.changes import Change, measure
    from gtr_turbo.merging.formats import find_format
    from gtr_turbo.merging.sums import SignSums

    num = 4096 * 11008
    values = torch.randn(num, generator=torch.Generator().manual_seed(0))
    target = torch.empty_like(values)
    change = Change(name="w", label="c", checkpoint=values, base=None)
    threshold = measure(change, DENSITY).threshold
    sums = SignSums(num, find_format("fp32"), "matched")
    copy = best_of(lambda: target.copy_(values)) / (8 * num)
    # Read: the change, two masses, two counts; written: the masses and counts.
    accumulate = best_of(lambda: sums.add(change, 1.0, threshold)) / (24 * num)
    print(json.dumps({"copy": 1e9 * copy, "accumulate": 1e9 * accumulate}))


def child_lora(_: list[str]) -> None:
    """Print CPU seconds of one decoder layer of a 7B model, rank 128, module by module."""
    import torch

    from gtr_turbo.merging import TiesAccumulator
    from gtr_turbo.merging.lora import AdapterChange, LoraFactors

    generator = torch.Generator().manual_seed(0)
    seconds = {"product": 0.0, "add": 0.0, "merge": 0.0}
    for name, (rows, columns) in LAYER_7B.items():
        first, second = (
            AdapterChange({
                name: LoraFactors(
                    a=torch.randn(RANK_7B, columns, generator=generator),
                    b=1e-3 * torch.randn(rows, RANK_7B, generator=generator),
                    scaling=2.0,
                )
            })
            for _ in range(2)
        )  # fmt: skip
        sums = TiesAccumulator(None, DENSITY)
        sums.add(first)
        for step in seconds:
            start = time.process_time()
            if step == "product":
                second[name]
            elif step == "add":
                sums.add(second)
            else:
                sums.merged_delta()
            seconds[step] += time.process_time() - start
    entries = sum(rows * columns for rows, columns in LAYER_7B.values())
    whole = NUM_LAYERS_7B * (seconds["add"] + seconds["merge"])
    print(json.dumps({"entries": entries, **seconds, "7B: add and merge": whole}))


CHILDREN: dict[str, Callable[[list[str]], None]] = {
    "write": child_write,
    "start": child_start,
    "torch": child_torch,
    "scratch": child_scratch,
    "next": child_next,
    "peft": child_peft,
    "floor": child_floor,
    "lora": child_lora,
}


def best_of(work: Callable[[], Any], times: int = 5) -> float:
    """Return the least CPU seconds of several runs."""
    found = []
    for _ in range(times):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


# ---- measuring ----


def measured(command: list[str], **variables: str) -> dict[str, Any]:
    """Run a command and return CPU and wall seconds, peak memory in GB and its last line."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"} | variables
    start = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=environment
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - start
        output.seek(0)
        text = output.read().decode(errors="replace")
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{text[-2000:]}")
    lines = text.strip().splitlines()
    return {
        "cpu": usage.ru_utime + usage.ru_stime,
        "wall": wall,
        "peak_gb": usage.ru_maxrss * 1024 / 1e9,
        "last_line": lines[-1] if lines else "",
    }


def child(name: str, *arguments: object, **variables: str) -> dict[str, Any]:
    """Measure one of our own child processes, with environment variables of its own."""
    command = [sys.executable, __file__, "--child", name, *(str(own) for own in arguments)]
    return measured(command, **variables)


def mergekit(python: str, root: Path, num: int) -> dict[str, Any] | str:
    """Measure mergekit on the same checkpoints, or return why it cannot be measured."""
    probe = [python, "-c", "import mergekit.scripts.run_yaml"]
    if subprocess.run(probe, capture_output=True, check=False).returncode != 0:
        return "mergekit is not installed; give --mergekit-python"
    models = "".join(
        f"  - model: {root / f'step-{index}'}\n    parameters: {{weight: 1, density: {DENSITY}}}\n"
        for index in range(num)
    )
    recipe = root / "recipe.yaml"
    recipe.write_text(
        f"merge_method: ties\nbase_model: {root / 'base'}\nmodels:\n{models}"
        "parameters: {normalize: true}\ndtype: float32\nout_dtype: bfloat16\n"
    )
    code = "from mergekit.scripts.run_yaml import main; main()"
    return measured([python, "-c", code, str(recipe), str(root / "mergekit-out")])


def contestants(root: Path, num: int, python: str | None) -> Iterator[tuple[str, Any]]:
    """Yield (name, figures or the reason for having none) for K = `num`; `python` None: ours."""
    state, out = root / "state", root / "next.safetensors"
    for name, variables in (("next", {}), ("next, numpy", {"GTR_TURBO_NATIVE": "0"})):
        if num > 1:
            child("next", root, state, out, 0, num - 2)
        yield name, child("next", root, state, out, num - 1, num - 1, **variables)
        shutil.rmtree(state)
    yield "scratch", child("scratch", root, num, root / "scratch-out")
    shutil.rmtree(root / "scratch-out")
    if python is None:
        return
    try:
        yield "peft", child("peft", root, num, root / "peft.safetensors")
    except RuntimeError as error:
        yield "peft", f"not measured: {str(error)[-200:]}"
    yield "mergekit", mergekit(python, root, num)
    shutil.rmtree(root / "mergekit-out", ignore_errors=True)


def show(num: int, row: dict[str, Any]) -> None:
    """Print the figures of one K, and how many times each costs the next merge."""
    unit = row["next"]["cpu"]
    for name, found in row.items():
        if isinstance(found, str):
            print(f"K {num:3d}  {name:10s} {found}", flush=True)
        else:
            print(
                f"K {num:3d}  {name:10s} {found['cpu']:8.1f} CPU s {found['wall']:8.1f} s wall"
                f" {found['peak_gb']:6.2f} GB {found['cpu'] / unit:7.1f} x next",
                flush=True,
            )


def main() -> None:
    """Run the benchmark, or one of its children."""
    if sys.argv[1:2] == ["--child"]:
        CHILDREN[sys.argv[2]](sys.argv[3:])
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--millions", type=float, default=110.0, help="parameters in millions")
    parser.add_argument("--checkpoints", type=int, nargs="+", default=[2, 5, 10, 20])
    parser.add_argument("--mergekit-python", default=sys.executable)
    parser.add_argument("--no-peers", action="store_true", help="leave PEFT and mergekit out")
    parser.add_argument("--no-lora", action="store_true", help="leave the 7B layer out")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--svg", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        written = child("write", root, options.millions, max(options.checkpoints))
        num_parameters = int(written["last_line"])
        start, torch = child("start"), child("torch")
        floor = json.loads(child("floor")["last_line"])
        table: dict[str, Any] = {"parameters": num_parameters, "start": start, "torch": torch}
        table["floor_ns"] = floor
        print(f"{num_parameters / 1e6:.1f} M parameters; start and imports {start['cpu']:.2f} CPU s"
              f" {start['peak_gb']:.2f} GB, with torch {torch['cpu']:.2f} CPU s"
              f" {torch['peak_gb']:.2f} GB", flush=True)  # fmt: skip
        print(f"copy {floor['copy']:.3f} ns/byte, accumulate {floor['accumulate']:.3f} ns/byte,"
              f" ratio {floor['accumulate'] / floor['copy']:.2f}")  # fmt: skip
        table["by_k"] = {}
        for num in options.checkpoints:
            python = None if options.no_peers else options.mergekit_python
            row = dict(contestants(root, num, python))
            table["by_k"][str(num)] = row
            show(num, row)
            if options.json is not None:
                options.json.write_text(json.dumps(table, indent=2) + "\n")
    if not options.no_lora:
        layer = child("lora")
        table["lora_7b_layer"] = json.loads(layer["last_line"]) | {"peak_gb": layer["peak_gb"]}
        print("one decoder layer of 7B, rank 128, CPU seconds:", table["lora_7b_layer"])
    if options.json is not None:
        options.json.write_text(json.dumps(table, indent=2) + "\n")
    if options.svg is not None:
        svg(table, options.svg)


if __name__ == "__main__":
    main()
