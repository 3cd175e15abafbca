"""Compares onnxruntime's predictions with lamo's: outside.py FOLDER TOLERANCE.

The folder has NAME.onnx, NAME.given.npz and NAME.made.npz, and NAME.POINTS.given.npz for other numbers of points. Each file is checked
by onnx, and run with all samples and with one.
"""

import pathlib
import sys

import numpy
import onnx
import onnxruntime


def relative(found, expected):
    return numpy.linalg.norm(found - expected) / max(numpy.linalg.norm(expected), 1e-30)


def main(folder, tolerance):
    worst, count, compared, failed = 0.0, 0, 0, []
    for path in sorted(pathlib.Path(folder).glob("*.onnx")):
        model = onnx.load(path)
        onnx.checker.check_model(model, full_check=True)
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        names = [value.name for value in session.get_inputs()]
        outputs = [value.name for value in session.get_outputs()]
        for arrays in [path.with_suffix(".given.npz"), *path.parent.glob(f"{path.stem}.*.given.npz")]:
            given, made = numpy.load(arrays), numpy.load(str(arrays).replace(".given.", ".made."))
            for samples in [len(given[names[0]]), 1]:
                found = session.run(None, {name: given[name][:samples].astype(numpy.float32) for name in names})
                for name, array in zip(outputs, found):
                    expected = made[name][:samples]
                    error = relative(array, expected) if array.shape == expected.shape else float("nan")
                    worst, compared = max(worst, error), compared + 1
                    if not error < tolerance:
                        failed.append(f"{arrays.stem}: {name} of {samples} samples differs by {error:.1e}, shape {array.shape}")
        count += 1
    print(f"{count} files, {compared} comparisons, largest relative error {worst:.1e}")
    print("\n".join(failed))
    return 1 if failed or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2])))
