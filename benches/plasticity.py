"""What bounds Plasticity (docs/recipes.md): kernel ridge regression from the die to the block, and the slide of the block.

    lamo data make plasticity --samples 980 --out data
    python benches/plasticity.py regression data
    lamo data make plasticity --samples 40 --seed 5 --out new
    lamo predict MODEL --input die=new/die.npy --output predicted.npz
    python benches/plasticity.py slide new predicted.npz
"""

import sys
from pathlib import Path

import numpy as np

TEST = 80


def relative_l2(error, truth):
    """Mean over the samples of |error| / |truth|; both are [count, values]."""
    return np.mean(np.linalg.norm(error, axis=1) / np.linalg.norm(truth, axis=1))


def regression(folder):
    """Errors on the last 80 samples, with 225, 450 and 900 to learn from; the best of 15 widths and ridges counts.

    Three inputs: the die; the die cut off where it never touches the block, which is 14.9 mm high and pressed by 5.7 mm; and the
    square of its depth below that height.
    """
    die = np.load(folder / "die.npy").astype(np.float64)  # [count, rows]
    block = np.load(folder / "deformation.npy").reshape(len(die), -1)
    test = np.arange(len(die) - TEST, len(die))
    truth = block[test].astype(np.float64)
    reach = 14.9 + 5.7
    inputs = {"die": die, "die cut off": np.minimum(die, reach), "squared depth": np.maximum(reach - die, 0) ** 2}
    for count in (count for count in (225, 450, 900) if count <= len(die) - TEST):
        middle = block[:count].mean(0)
        known = (block[:count] - middle).astype(np.float64)
        print(f"{count} dies: mean {relative_l2(middle - truth, truth):.5f}")
        for name, values in inputs.items():
            square = ((values[:, None] - values[None]) ** 2).sum(-1)
            nearest = block[np.argmin(square[test][:, :count], 1)]
            print(f"  {name}: nearest {relative_l2(nearest - truth, truth):.5f}")
            for width in (0.5, 1, 2, 4, 8):
                distance = np.sqrt(5 * square / np.median(square)) / width
                kernel = (1 + distance + distance**2 / 3) * np.exp(-distance)  # Matern 5/2
                for ridge in (1e-8, 1e-5, 1e-3):
                    system = kernel[:count, :count] + ridge * np.eye(count)
                    weights = np.linalg.solve(system, kernel[:count][:, test])
                    error = relative_l2(middle + weights.T @ known - truth, truth)
                    print(f"    width {width}, ridge {ridge:g}: {error:.5f}", flush=True)


def slide(folder, predicted):
    """The part of the error that is a shift of the whole block along x, the same at all points of a snapshot."""
    truth = np.load(folder / "deformation.npy").astype(np.float64)  # [count, snapshots, rows, columns, (x, y, u_x, u_y)]
    error = np.load(predicted)["deformation"] - truth
    still = error.copy()
    still[..., [0, 2]] -= error[..., [0, 2]].mean((2, 3), keepdims=True)
    flat = lambda values: values.reshape(len(truth), -1)
    print(f"error {relative_l2(flat(error), flat(truth)):.5f}, without the slide {relative_l2(flat(still), flat(truth)):.5f}")
    print(f"part of the slide in the square of the error: {1 - (still**2).sum() / (error**2).sum():.3f}")
    last = lambda values, channel: values[:, -1, :, :, channel].mean((1, 2))
    print(f"at the last snapshot: slides {last(truth, 2).std():.3f} mm, errors {np.sqrt((last(error, 2) ** 2).mean()):.3f} mm")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["regression", folder]:
            regression(Path(folder))
        case ["slide", folder, predicted]:
            slide(Path(folder), predicted)
        case _:
            sys.exit(__doc__)
