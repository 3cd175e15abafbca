"""Writes the seeds of the fuzz targets: one folder per reader, small files, made-up numbers.

Needs numpy, scipy, h5py and safetensors. The manifests are written by hand.
"""

import os

import h5py
import numpy as np
import scipy.io
from safetensors.numpy import save_file

os.chdir(os.path.dirname(os.path.abspath(__file__)))
A = np.arange(12, dtype="f4").reshape(2, 3, 2) / 4
B = np.arange(6, dtype="f8").reshape(3, 2)


def folder(name):
    os.makedirs(name, exist_ok=True)
    return lambda file: os.path.join(name, file)


at = folder("npy")
np.save(at("c.npy"), A)
np.save(at("fortran.npy"), np.asfortranarray(B))
np.save(at("big_endian.npy"), B.astype(">i4"))
np.save(at("scalar.npy"), np.float32(2))
np.save(at("truth.npy"), B > 2)
with open(at("version3.npy"), "wb") as file:
    np.lib.format.write_array(file, A, (3, 0))

at = folder("npz")
np.savez(at("stored.npz"), a=A, b=B)
np.savez_compressed(at("deflated.npz"), a=A, b=np.asfortranarray(B))
np.savez(at("text.npz"), a=A, words=np.array(["a"]))

at = folder("mat5")
arrays = {"a": A, "b": B, "i": B.astype("i2"), "l": B > 2}
scipy.io.savemat(at("plain.mat"), arrays)
scipy.io.savemat(at("packed.mat"), arrays, do_compression=True)
scipy.io.savemat(at("others.mat"), {"b": B, "t": "text", "c": B * 1j, "s": {"x": 1.0}, "e": np.zeros((0, 2))})

at = folder("hdf5")
with h5py.File(at("plain.h5"), "w") as file:
    file["a"], file["group/b"] = A, B
with h5py.File(at("packed.h5"), "w", libver="latest") as file:
    file.create_dataset("a", data=A, chunks=(1, 2, 2), compression="gzip", shuffle=True, fletcher32=True)

at = folder("mat73")
with h5py.File(at("a.mat"), "w", userblock_size=512) as file:
    for name, array in (("a", A), ("b", B)):
        stored = file.create_dataset(name, data=np.ascontiguousarray(array.T), compression="gzip")
        stored.attrs["MATLAB_class"] = np.bytes_("double" if name == "b" else "single")
with open(at("a.mat"), "r+b") as file:
    file.write(b"MATLAB 7.3 MAT-file, made up".ljust(124) + b"\x00\x02IM")

at = folder("safetensors")
save_file({"a": A, "b": B, "i": B.astype("i8")}, at("three.safetensors"), {"note": "made up"})
save_file({"a": A.astype("f2")}, at("half.safetensors"))

# the array that the manifests speak of: 3 samples of 2 x 2
at = folder("array")
np.save(at("u.npy"), np.arange(12, dtype="<f4").reshape(3, 2, 2))
