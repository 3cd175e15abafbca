"""Makes this folder with the binary of lamo 0.1: `python make.py LAMO_0_1`. Needs numpy.

All is made in a temporary folder and moved here, so the places that the runs name are gone. A stopped run ends at the step
at which the signal meets it, so a second run of this script gives other ones.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

import numpy as np

lamo = os.path.abspath(sys.argv[1])
here = os.path.dirname(os.path.abspath(__file__))
os.chdir(tempfile.mkdtemp(prefix="lamo-0.1-"))
PATCHES = "model.settings={ width = 8, depth = 1, mlp_ratio = 1, states = 4, head_width = 8, padded = [0, 0] }"
SLICES = "model.settings={ width = 8, depth = 1, mlp_ratio = 1, states = 4, head_width = 8, tokens = 4, slice_heads = 2 }"


def call(*arguments):
    subprocess.run([lamo, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def train(name, *changes, stop=False):
    changes = [part for change in ("train.batch=2", *changes) for part in ("--set", change)]
    command = [lamo, "train", f"data/{name}", "--out", f"runs/{name}", "--json", *changes]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if stop and json.loads(line).get("epoch", 0) >= 20:
            process.send_signal(signal.SIGINT)
            break
    process.stdout.read()
    process.wait()


os.makedirs("expected")
os.makedirs("scratch")

call("data", "make", "darcy", "--resolution", 8, "--samples", 6, "--out", "data/darcy")
call("data", "make", "navier-stokes", "--resolution", 32, "--set", "frames=5", "--samples", 4, "--out", "data/navier-stokes")
call("data", "make", "plasticity", "--resolution", 1, "--set", "frames=4", "--samples", 3, "--out", "data/plasticity")
random = np.random.default_rng(0)
positions, load = random.random((5, 12, 2), "f4"), random.random((5, 12), "f4")
stress = 1 + positions[..., 0] * load + np.sin(3 * positions[..., 1])
for name, array in (("positions", positions), ("load", load), ("stress", stress)):
    np.save(f"scratch/{name}.npy", array)
arrays = ["--positions", "scratch/positions.npy", "--input", "load=scratch/load.npy", "--output", "stress=scratch/stress.npy"]
call("data", "import", *arrays, "--unit", "stress=MPa", "--grid", "cloud", "--out", "data/cloud")

train("darcy", PATCHES, "train.epochs=2")
train("cloud", SLICES, "train.epochs=2", "data.normalise=[]")
train("navier-stokes", PATCHES, "train.epochs=300", "data.past=2", stop=True)
train("plasticity", SLICES, "train.epochs=100", "data.scrambled=true", stop=True)

# what 0.1 makes of them: predictions, and the last epoch of the stopped runs
call("predict", "runs/darcy", "--input", "data/darcy/permeability.npy", "--output", "expected/pressure.npy")
np.savez("scratch/cloud.npz", positions=positions, load=load)
call("predict", "runs/cloud", "--input", "scratch/cloud.npz", "--output", "expected/stress.npy")
for name in ("navier-stokes", "plasticity"):
    shutil.copytree(f"runs/{name}", f"scratch/{name}")
    call("train", "--resume", f"scratch/{name}")
    last = open(f"scratch/{name}/history.jsonl").read().splitlines()[-1]
    with open(f"expected/{name}.json", "w") as file:
        file.write(last + "\n")

# the weights of a run as a state dict, imported with a description
call("export-weights", "runs/cloud", "--out", "scratch/weights.safetensors")
experiment = open("runs/cloud/experiment.toml").read()
model = experiment[experiment.index("[model]") : experiment.index("[data]")]
with open("scratch/model.toml", "w") as file:
    file.write(model + '[task]\nspace = 2\nfunctions = 1\noutputs = 1\ngrid = { kind = "cloud", points = 12 }\n')
call("import", "scratch/weights.safetensors", "--config", "scratch/model.toml", "--out", "models/cloud")

for run in os.listdir("runs"):
    shutil.rmtree(f"runs/{run}/pictures", ignore_errors=True)
    for name in ("report.html", "lock"):
        if os.path.exists(f"runs/{run}/{name}"):
            os.remove(f"runs/{run}/{name}")
for folder in ("data", "runs", "models", "expected"):
    shutil.rmtree(f"{here}/{folder}", ignore_errors=True)
    shutil.move(folder, here)
shutil.rmtree(os.getcwd())
