"""Fifteen rivals of lamo in plain PyTorch: are they the originals, and how long does one training step take?

    python benches/torch_rivals.py check fixtures/baselines [--device cuda --tf32]
    python benches/torch_rivals.py step --benchmark darcy --device cuda --steps 50 [--model unet --model ono] [--json]
    python benches/torch_rivals.py train --model ffno --data data/elasticity --weights first.safetensors --samples 2

`check` builds every fixture's model from its config.json, loads params.safetensors and compares the training-mode
output, the loss and all gradients with io.safetensors. With `--tf32` products and convolutions round as `lamo
--precision tf32` does: it shows what this costs the original.

`step` builds every model at the official sizes of the benchmark, compares the number of parameters with the
official one and times a full training step: forward, sum of relative L2 errors, backward, clipping where the
official script clips, AdamW, zero_grad. Eager mode, float32 with PyTorch's defaults (convolutions may use TF32,
matrix products do not), no cudnn.benchmark. Darcy: 85 x 85 points, batch 4 for all (the script of LSM has 20,
those of HT-Net and OFormer have 8); Elasticity: 972 points, batch 1 for all. The data are random. OFormer and
HT-Net train with their own dropout and stochastic depth unless `--no-dropout` is given. Needs torch and safetensors.

`train` trains a model of Elasticity from the weights that `lamo export-weights` wrote, with the first samples of a data
set of `lamo` as one batch, AdamW at 1e-3, half a cosine over all steps, and prints the mean error and the norm of the
gradient of each step. `lamo train elasticity --model M --set data.train=2 --set train.batch=2 --set train.epochs=STEPS`
has the same errors in its history, as far as rounding is not amplified. Needs numpy, too.
"""

import argparse
import gc
import json
import math
import pathlib
import statistics
import sys
import time
import warnings

import torch
from safetensors.torch import load_file

from rivals import BENCHMARKS, RIVALS, build
from rivals.windows import DropPath

# Largest deviation / largest value. U-FNO and U-NO lose more to rounding, see the README of the fixtures.
OUTPUT_TOLERANCE, LOSS_TOLERANCE, GRADIENT_TOLERANCE, ROUGH_GRADIENT_TOLERANCE = 2e-5, 1e-5, 3e-4, 1e-3
TF32_TOLERANCE, TF32_GRADIENT_TOLERANCE = 5e-3, 2e-2  # as docs/performance.md states them
ROUGH = ("ufno", "uno", "unet_b", "lsm_b")


def relative_error(output, target):
    """Sum over the batch of ||output - target|| / ||target||."""
    batch = output.shape[0]
    difference = torch.norm(output.reshape(batch, -1) - target.reshape(batch, -1), 2, 1)
    return torch.sum(difference / torch.norm(target.reshape(batch, -1), 2, 1))


def load(model, tensors):
    """Every tensor of the file has its place and every place its tensor; a complex one is stored as pairs."""
    own = model.state_dict()
    for name, tensor in tensors.items():
        if name in own and own[name].is_complex():
            tensors[name] = torch.view_as_complex(tensor)
        elif name not in own and name.endswith("feature_cov"):  # ONO has none before its first step
            block, _, buffer = name.rpartition(".")
            setattr(model.get_submodule(block), buffer, tensor.clone())
    model.load_state_dict(tensors, strict=True)


def deviation(ours, reference):
    if torch.is_complex(ours):
        ours = torch.view_as_real(ours)
    ours, reference = ours.detach().double(), reference.double()
    return ((ours - reference).abs().max() / reference.abs().max().clamp(min=1e-30)).item()


def whole_gradient_deviation(model, tensors):
    """||gradient - reference|| / ||reference|| over all parameters."""
    difference = size = 0.0
    for name, parameter in model.named_parameters():
        if (reference := tensors.get(f"grad.param.{name}")) is not None:
            gradient = torch.view_as_real(parameter.grad) if parameter.is_complex() else parameter.grad
            difference += (gradient - reference).double().square().sum().item()
            size += reference.double().square().sum().item()
    return math.sqrt(difference / size)


def gradient_deviation(model, tensors):
    """The worst parameter, less the 1e-7 that every gradient may be off."""
    worst = 0.0
    for name, parameter in model.named_parameters():
        reference = tensors.get(f"grad.param.{name}")
        if (reference is None) != (parameter.grad is None):
            raise ValueError(f"{name} has a gradient on one side only")
        if reference is not None:
            gradient = torch.view_as_real(parameter.grad) if parameter.is_complex() else parameter.grad
            excess = (gradient - reference).abs().max() - 1e-7
            worst = max(worst, (excess / reference.abs().max().clamp(min=1e-30)).item())
    return worst


def compare(folder, device, tf32):
    """(name, deviation, tolerance) of everything that the fixture states."""
    config = json.loads((folder / "config.json").read_text())
    tensors = load_file(folder / "io.safetensors")
    model = build(config["variant"], **{**config["model"], **config.get("constructor", {})})
    load(model, load_file(folder / "params.safetensors"))
    model.to(device)
    tensors = {name: tensor.to(device) for name, tensor in tensors.items()}
    for module in model.modules():  # as the fixtures were made: PyTorch's batch norm of channels-last images is rough
        if isinstance(module, torch.nn.BatchNorm2d):
            module.register_forward_pre_hook(lambda _, inputs: tuple(image.contiguous() for image in inputs))
    inputs = [tensors.get(f"in.{name}") for name in ("x", "fx", "T")]
    more = {"query_points": tensors["in.xq"]} if "in.xq" in tensors else {}
    ono, htnet = (config["variant"] == name for name in ("ono", "htnet"))
    found = []

    def output(name):
        with torch.no_grad():
            found.append((name, deviation(model(*inputs, **more), tensors[f"{name}_f64"]), OUTPUT_TOLERANCE))

    if "out_eval" in tensors and not ono:
        model.eval()
        output("out_eval")
    model.train(not htnet)  # HT-Net's output is stored without stochastic depth
    result = model(*inputs, **more)
    loss = relative_error(result, tensors["target"])
    loss.backward()
    found.insert(0, ("out", deviation(result, tensors["out_f64"]), OUTPUT_TOLERANCE))
    found.insert(1, ("loss", deviation(loss, tensors["loss_f64"]), LOSS_TOLERANCE))
    rough = folder.name in ROUGH or config["variant"] in ROUGH
    limit = ROUGH_GRADIENT_TOLERANCE if rough else GRADIENT_TOLERANCE
    found.insert(2, ("gradients", gradient_deviation(model, tensors), limit))
    if tf32:
        whole = ("whole gradient", whole_gradient_deviation(model, tensors), TF32_GRADIENT_TOLERANCE)
        return [(name, value, TF32_TOLERANCE) for name, value, _ in found[:2]] + [whole]
    if "out_eval" in tensors and ono:
        model.eval()
        output("out_eval")
    if "out_train" in tensors:
        model.train()
        for name, factors in tensors.items():
            if name.startswith("droppath."):
                model.get_submodule(name.removeprefix("droppath.")).recorded = list(factors)
        output("out_train")
    return found


def check(options):
    variants, checked, failed = {variant for variant, _ in RIVALS.values()} | {"oformer_ns"}, 0, 0
    torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = options.tf32
    warnings.filterwarnings("ignore", message="TF32 acceleration on top of oneDNN")
    for path in sorted(pathlib.Path(options.folder).glob("**/config.json")):
        if json.loads(path.read_text())["variant"] not in variants:
            continue
        checked += 1
        try:
            with torch.backends.mkldnn.flags(enabled=False):  # as the fixtures were made
                found = compare(path.parent, options.device, options.tf32)
            passed = all(value <= tolerance for _, value, tolerance in found)
            numbers = "  ".join(f"{name} {value:.1e}" for name, value, _ in found)
        except Exception as problem:
            passed, numbers = False, f"{type(problem).__name__}: {problem}"
        failed += not passed
        print(f"{'pass' if passed else 'FAIL'}  {path.parent.name:14} {numbers}", flush=True)
    if options.tf32:
        print(f"{checked - failed} of {checked} fixtures pass in TF32: output and loss within {TF32_TOLERANCE:.0e}, "
              f"the gradient as a whole {TF32_GRADIENT_TOLERANCE:.0e}")
        return 0 if checked and not failed else 1
    print(f"{checked - failed} of {checked} fixtures pass: output within {OUTPUT_TOLERANCE:.0e}, "
          f"loss {LOSS_TOLERANCE:.0e}, gradients {GRADIENT_TOLERANCE:.0e} of the largest value "
          f"({', '.join(ROUGH)}: {ROUGH_GRADIENT_TOLERANCE:.0e})")
    return 0 if checked and not failed else 1


def random_batch(benchmark, device):
    batch, points, fields = benchmark["batch"], benchmark["points"], benchmark["fields"]
    side = math.isqrt(points)
    if side * side == points:
        axis = torch.linspace(0, 1, side)
        coordinates = torch.stack(torch.meshgrid(axis, axis, indexing="xy"), -1)
        coordinates = coordinates.reshape(1, points, 2).repeat(batch, 1, 1)
    else:
        coordinates = torch.rand(batch, points, 2)
    values = torch.randn(batch, points, fields).to(device) if fields else None
    return coordinates.to(device), values, torch.randn(batch, points, 1).to(device)


def without_dropout(model):
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        elif isinstance(module, DropPath):
            module.rate = 0.0


def measure(name, options):
    benchmark_name, device, steps = options.benchmark, options.device, options.steps
    variant, official = RIVALS[name]
    if benchmark_name not in official:
        return {"model": name, "skipped": f"the original has no {benchmark_name}"}
    benchmark, (sizes, expected) = BENCHMARKS[benchmark_name], official[benchmark_name]
    torch.manual_seed(0)
    model = build(variant, **{**benchmark["sizes"], **sizes}).to(device).train()
    if options.no_dropout:
        without_dropout(model)
    parameters = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    points, values, target = random_batch(benchmark, device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-5)
    synchronise = torch.cuda.synchronize if device == "cuda" else lambda: None

    def step():
        loss = relative_error(model(points, values), target)
        optimiser.zero_grad()
        loss.backward()
        if "clip" in sizes:
            torch.nn.utils.clip_grad_norm_(model.parameters(), sizes["clip"])
        optimiser.step()
        return loss

    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    for _ in range(options.warm_up):
        step()
    milliseconds = []
    for _ in range(steps):
        synchronise()
        start = time.perf_counter()
        loss = step()
        synchronise()
        milliseconds.append(1e3 * (time.perf_counter() - start))
    peak = torch.cuda.max_memory_allocated() / 2**20 if device == "cuda" else None
    return {"model": name, "milliseconds": statistics.median(milliseconds), "fastest": min(milliseconds),
            "mebibytes": peak, "parameters": parameters, "official_parameters": expected,
            "batch": benchmark["batch"], "loss": loss.item()}


def train(options):
    import numpy

    variant, official = RIVALS[options.model]
    sizes, _ = official["elasticity"]
    model = build(variant, **{**BENCHMARKS["elasticity"]["sizes"], **sizes}).train()
    load(model, load_file(options.weights))
    positions, stress = (torch.from_numpy(numpy.load(pathlib.Path(options.data) / f"{name}.npy")[:options.samples])
                         for name in ("positions", "stress"))
    target, mean, deviation = stress[..., None], stress.mean(), stress.std()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-5)
    rates = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, options.steps)
    for number in range(options.steps):
        loss = relative_error(model(positions, None) * deviation + mean, target)
        optimiser.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), sizes.get("clip", math.inf))
        optimiser.step()
        rates.step()
        print(f"step {number + 1:3}  error {loss.item() / options.samples:.4f}  norm of the gradient {norm:.3g}")
    return 0


def row(result):
    if "skipped" in result or "error" in result:
        return f"{result['model']:11} {result.get('skipped') or 'FAILED: ' + result['error']}"
    peak = "-" if result["mebibytes"] is None else f"{result['mebibytes']:.0f}"
    agree = "" if result["parameters"] == result["official_parameters"] else f" NOT {result['official_parameters']:,}"
    return f"{result['model']:11} {result['milliseconds']:10.2f} {peak:>9} {result['parameters']:>13,}{agree}"


def step(options):
    where = torch.cuda.get_device_name() if options.device == "cuda" else f"CPU, {torch.get_num_threads()} threads"
    batch = BENCHMARKS[options.benchmark]["batch"]
    if not options.json:
        print(f"{options.benchmark}, batch {batch}, PyTorch {torch.__version__}, {where}, "
              f"median of {options.steps} steps")
        print(f"{'model':11} {'ms a step':>10} {'peak MiB':>9} {'parameters':>13}")
    results = []
    for name in options.model or RIVALS:
        try:
            result = measure(name, options)
        except Exception as problem:
            result = {"model": name, "error": f"{type(problem).__name__}: {problem}"}
        results.append(result)
        if not options.json:
            print(row(result), flush=True)
        gc.collect()
        if options.device == "cuda":
            torch.cuda.empty_cache()
    if options.json:
        print(json.dumps({"benchmark": options.benchmark, "batch": batch, "torch": torch.__version__, "device": where,
                          "steps": options.steps, "dropout": not options.no_dropout, "models": results}))
    wrong = [r for r in results if "error" in r or r.get("parameters") != r.get("official_parameters")]
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    checker = commands.add_parser("check", help="compare with fixtures of the official code")
    checker.add_argument("folder", help="a folder with fixtures below it")
    checker.add_argument("--device", choices=["cuda", "cpu"], default="cpu")
    checker.add_argument("--tf32", action="store_true", help="products and convolutions in TF32, at its tolerances")
    stepper = commands.add_parser("step", help="time training steps at the official sizes")
    stepper.add_argument("--benchmark", choices=list(BENCHMARKS), required=True)
    stepper.add_argument("--model", choices=list(RIVALS), action="append", help="may be given again; all if absent")
    stepper.add_argument("--device", choices=["cuda", "cpu"], default="cuda" if torch.cuda.is_available() else "cpu")
    stepper.add_argument("--steps", type=int, default=50)
    stepper.add_argument("--warm-up", type=int, default=10)
    stepper.add_argument("--no-dropout", action="store_true", help="OFormer and HT-Net without their dropout")
    stepper.add_argument("--json", action="store_true", help="print one object")
    trainer = commands.add_parser("train", help="losses of a training on Elasticity from given weights")
    trainer.add_argument("--model", choices=[name for name in RIVALS if "elasticity" in RIVALS[name][1]], required=True)
    trainer.add_argument("--data", required=True, help="a folder that lamo data make elasticity wrote")
    trainer.add_argument("--weights", required=True, help="a file that lamo export-weights wrote")
    trainer.add_argument("--samples", type=int, default=2)
    trainer.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()
    return {"check": check, "step": step, "train": train}[options.command](options)


if __name__ == "__main__":
    sys.exit(main())
