"""Latency of one prediction on a CPU: lamo's Python module and PyTorch in turns, in one process, with the same weights.

    pip install ./crates/python torch
    python benches/latency.py --threads 2 --repeat 50

The model is the pretrained LaMO for Darcy flow (85 x 85 points, 8 blocks, 1936 tokens), batch 1. The PyTorch side is eager, in
inference mode, with the scan of torch_cpu.py, whose matrices stay in cache; its output is compared with lamo's before anything is
timed. Both sides take an array of NumPy in physical units and give one. Prints one line of JSON: the 50th and 95th percentile
of both in milliseconds, the processor time of both, and the ratios of the medians. On a busy machine compare with --threads 1 and
look at the processor time: PyTorch's threads wait for each other, so that one that has no core delays all.
"""

import argparse
import json
import os
import sys
import time

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--threads", type=int, default=2, help="threads of both sides")
parser.add_argument("--repeat", type=int, default=50, help="timed predictions of each side")
options = parser.parse_args()
os.environ["RAYON_NUM_THREADS"] = str(options.threads)  # before the first prediction starts lamo's threads

try:
    import numpy as np
    import torch
    import torch.nn.functional as functional

    import lamo
except Exception as problem:
    print(f"numpy, torch and lamo are needed: {problem}.", file=sys.stderr)
    sys.exit(3)

sys.argv = sys.argv[:1]
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from torch_cpu import ChunkedScan, directions  # noqa: E402

TOLERANCE = 1e-4
"""Largest difference relative to the largest output; both sides round in float32 in another order."""


class Twin:
    """LaMO on patches of a plane, as the authors' modules compute it."""

    def __init__(self, run):
        self.w = run.to_torch(tensors=True)
        self.settings, self.rows, self.columns = run.settings, run.grid["rows"], run.grid["columns"]
        assert self.settings["latent"] == "patches" and self.settings["mixer"] == "cross", "a LaMO on patches"
        self.patch, (self.high, self.long) = self.settings["patch"], self.settings["padded"]
        self.down, self.across = self.high // self.patch, self.long // self.patch
        self.orders, self.places, self.projected, _ = directions(1, self.down, self.across)
        x, y = torch.meshgrid(torch.linspace(0, 1, self.rows), torch.linspace(0, 1, self.columns), indexing="ij")
        self.positions = torch.stack([y, x])  # the column's coordinate first
        for number in range(self.settings["depth"]):
            name = f"block1.{number}.hydra."
            self.w[name + "A"] = -self.w[name + "A_logs"].exp()
            self.w[name + "D"] = self.w[name + "Ds"].sum(0).view(-1)

    def norm(self, t, name):
        weight = self.w[name + ".weight"]
        return functional.layer_norm(t, weight.shape, weight, self.w[name + ".bias"])

    def mix(self, t, name):
        """SS2D: four scans over the tokens [1, tokens, width]."""
        w, inner = self.w, self.w[name + "conv2d.1.bias"].shape[0]
        heads, states = w[name + "A_logs"].shape[1], self.settings["states"]
        x, z = functional.linear(t, w[name + "in_proj.weight"]).chunk(2, dim=-1)
        image = x.unflatten(1, (self.down, self.across)).permute(0, 3, 1, 2)
        image = functional.conv2d(image, w[name + "conv2d.1.weight"], w[name + "conv2d.1.bias"], padding=1, groups=inner)
        x = functional.gelu(image).permute(0, 2, 3, 1).reshape(-1, inner)
        selected = functional.linear(x, w[name + "x_proj_weight"].flatten(0, 1)).view(-1, heads + 2 * states)
        selected = selected.index_select(0, self.projected).view(1, 4, -1, heads + 2 * states)
        step, write, read = selected.split([heads, states, states], dim=-1)
        step = functional.softplus(step + w[name + "dt_projs_bias"].unsqueeze(1))
        sequences = x.index_select(0, self.orders).view(1, 4, -1, heads, inner // heads)
        y = ChunkedScan.apply(sequences, step, w[name + "A"], write, read)
        y = functional.embedding_bag(self.places, y.reshape(-1, inner), mode="sum")
        y = torch.addcmul(y, x, w[name + "D"])
        y = self.norm(y, name + "out_norm").view(1, -1, inner) * functional.gelu(z)
        return functional.linear(y, w[name + "out_proj.weight"])

    def mlp(self, t, name):
        hidden = functional.linear(t, self.w[name + "fc1.weight"], self.w[name + "fc1.bias"])
        if self.settings["mlp"] == "swiglu":
            gate, hidden = hidden.chunk(2, dim=-1)
            hidden = functional.silu(gate) * hidden
        else:
            hidden = functional.gelu(hidden)
        return functional.linear(hidden, self.w[name + "fc2.weight"], self.w[name + "fc2.bias"])

    @torch.inference_mode()
    def __call__(self, field, normalisers):
        (mean, deviation), (shift, scale) = normalisers
        image = torch.cat([self.positions, ((torch.from_numpy(field) - mean) / deviation).unsqueeze(0)])
        image = functional.pad(image, (0, self.long - self.columns, 0, self.high - self.rows)).unsqueeze(0)
        t = functional.conv2d(image, self.w["patch_embed1.WE"], self.w["patch_embed1.bE"], stride=self.patch)
        t = self.norm(t.flatten(2).transpose(1, 2), "patch_embed1.layer_norm") + self.w["pos_embed1"]
        for number in range(self.settings["depth"]):
            name = f"block1.{number}."
            t = t + self.mix(self.norm(t, name + "norm1"), name + "hydra.")
            t = t + self.mlp(self.norm(t, name + "norm2"), name + "mlp.")
        t = self.norm(t, "depatch_embed1.layer_norm") + self.w["depatch_embed1.bE"]
        t = t.transpose(1, 2).unflatten(2, (self.down, self.across))
        image = functional.conv_transpose2d(t, self.w["depatch_embed1.WE"], stride=self.patch)
        return (image[0, 0, : self.rows, : self.columns] * scale + shift).numpy()


def normalisers(run):
    """Mean and deviation of the input and the output."""
    both = run.normalisers
    return [(both[role]["mean"][0], both[role]["deviation"][0]) for role in ("inputs", "outputs")]


def main():
    torch.set_num_threads(options.threads)
    run = lamo.pretrained("darcy")
    random = np.random.default_rng(0)
    waves = random.standard_normal((run.grid["rows"], run.grid["columns"])).cumsum(0).cumsum(1)
    field = np.where(waves > np.median(waves), 12.0, 3.0).astype(np.float32)
    twin, scales = Twin(run), normalisers(run)
    ours, theirs = run.predict(field), twin(field, scales)
    difference = float(np.abs(ours - theirs).max() / np.abs(ours).max())
    if not difference < TOLERANCE:
        sys.exit(f"the two sides differ by {difference:.1e} of the largest output, {TOLERANCE} at most is expected")
    seconds, processor = {"lamo": [], "torch": []}, {"lamo": [], "torch": []}
    for _ in range(options.repeat):
        for name, work in (("lamo", lambda: run.predict(field)), ("torch", lambda: twin(field, scales))):
            start, busy = time.perf_counter(), time.process_time()
            work()
            seconds[name].append(time.perf_counter() - start)
            processor[name].append(time.process_time() - busy)

    def percentile(times, q):
        return {name: round(1e3 * float(np.percentile(each, q)), 3) for name, each in times.items()}

    p50, p95, cpu = percentile(seconds, 50), percentile(seconds, 95), percentile(processor, 50)
    print(json.dumps({
        "torch": torch.__version__, "threads": options.threads, "repeat": options.repeat, "difference": difference,
        "p50_ms": p50, "p95_ms": p95, "processor_p50_ms": cpu, "torch_over_lamo": p50["torch"] / p50["lamo"],
        "torch_over_lamo_processor": cpu["torch"] / cpu["lamo"],
    }))
    return 0


if __name__ == "__main__":
    sys.exit(main())
