"""Compares onnxruntime's predictions with lamo's: outside.py FOLDER TOLERANCE.

The folder has NAME.onnx, NAME.given.npz and NAME.made.npz. Each file is checked by onnx, and run with all samples and with one.
"""

import pathlib
import sys

import numpy
import onnx
import onnxruntime


def relative(found, expected):
    return numpy.linalg.norm(found - expected) / max(numpy.linalg.norm(expected), 1e-30)


def main(folder, tolerance):
    worst, count, failed = 0.0, 0, []
    for path in sorted(pathlib.Path(folder).glob("*.onnx")):
        model = onnx.load(path)
        onnx.checker.check_model(model, full_check=True)
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        given = numpy.load(path.with_suffix(".given.npz"))
        made = numpy.load(path.with_suffix(".made.npz"))
        names = [value.name for value in session.get_inputs()]
        outputs = [value.name for value in session.get_outputs()]
        for samples in [len(given[names[0]]), 1]:
            found = session.run(None, {name: given[name][:samples].astype(numpy.float32) for name in names})
            for name, array in zip(outputs, found):
                expected = made[name][:samples]
                error = relative(array, expected) if array.shape == expected.shape else float("nan")
                worst = max(worst, error)
                if not error < tolerance:
                    failed.append(f"{path.stem}: {name} of {samples} samples differs by {error:.1e}, shape {array.shape}")
        count += 1
    print(f"{count} files, largest relative error {worst:.1e}")
    print("\n".join(failed))
    return 1 if failed or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2])))
