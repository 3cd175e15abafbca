"""Writes the array files of this folder from made-up numbers: see README.md. Needs numpy, scipy, h5py,
safetensors and torch.

Element n (in C order) of an array of shape 3 x 4 x 5 is (7 n mod 23) - 5, a quarter of that for floats, without the 5
for unsigned integers, and whether it is positive for truth values; tests/claims/readers.rs says the same. The small
arrays A and B are for files that fuzzing changes. The manifests in dataset/ are written by hand.
"""

import io
import json
import os
import struct
import zipfile
import zlib

import h5py
import numpy as np
import scipy.io
import scipy.sparse
import torch
from safetensors.numpy import save_file

os.chdir(os.path.dirname(os.path.abspath(__file__)))
SHAPE = (3, 4, 5)
A = np.arange(12, dtype="f4").reshape(2, 3, 2) / 4
B = np.arange(6, dtype="f8").reshape(3, 2)
KINDS = "f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1".split()


def made_up(kind, shape=SHAPE):
    n = np.arange(int(np.prod(shape))).reshape(shape)
    values = (7 * n) % 23 - 5
    if kind[0] == "f":
        return (values / 4).astype(kind)
    if kind[0] == "u":
        return (values + 5).astype(kind)
    return (values > 0) if kind == "b1" else values.astype(kind)


def npy():
    np.save("npy/c.npy", made_up("f8"))
    np.save("npy/fortran.npy", np.asfortranarray(made_up("f4")))
    np.save("npy/big_endian_fortran.npy", np.asfortranarray(made_up("i2").astype(">i2")))
    np.save("npy/scalar.npy", np.float64(2.5))
    np.save("npy/line.npy", made_up("f4", (7,)))
    np.save("npy/empty.npy", np.zeros((0, 3)))
    np.save("npy/complex.npy", np.zeros((2, 2), complex))
    np.save("npy/records.npy", np.zeros(2, [("x", "f8"), ("y", "i4")]))
    for version in ((2, 0), (3, 0)):
        with open(f"npy/version{version[0]}.npy", "wb") as file:
            np.lib.format.write_array(file, made_up("f8"), version)
    np.save("npy/big_endian.npy", B.astype(">i4"))
    np.save("npy/truth.npy", B > 2)
    np.save("dataset/u.npy", np.arange(12, dtype="<f4").reshape(3, 2, 2))  # 3 samples of 2 x 2


def npz():
    arrays = {}
    for kind in KINDS:
        for order in "<>":
            array = made_up(kind).astype(order + kind)
            arrays[f"{kind}{order}c"] = array
            arrays[f"{kind}{order}f"] = np.asfortranarray(array)
    np.savez("npz/stored.npz", **arrays)
    np.savez_compressed("npz/deflated.npz", **arrays)
    np.savez("npz/odd.npz", numbers=made_up("f8"), text=np.array(["a", "b"]), complex=np.zeros(2, complex))
    with zipfile.ZipFile("npz/odd.npz", "a") as archive:
        archive.writestr("readme.txt", "not an array")
        archive.comment = b"a comment at the end"
    np.savez_compressed("npz/one.npz", field=np.asfortranarray(made_up("f4")))
    np.savez("npz/two.npz", a=A, b=B)
    np.savez_compressed("npz/two_deflated.npz", a=A, b=np.asfortranarray(B))
    np.savez("npz/text.npz", a=A, words=np.array(["a"]))
    zip64()


def zip64():
    """As an archive above 4 GiB has it: every size and place in 64-bit fields."""
    name, contents = b"field.npy", io.BytesIO()
    np.save(contents, made_up("f4"))
    contents = contents.getvalue()
    sum, size, wide = zlib.crc32(contents), len(contents), 0xFFFFFFFF
    extra = struct.pack("<HHQQ", 1, 16, size, size)
    local = struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 45, 0, 0, 0, 33, sum, wide, wide, len(name), len(extra)) + name + extra
    extra = struct.pack("<HHQQQ", 1, 24, size, size, 0)
    central = struct.pack("<4sHHHHHHIIIHHHHHII", b"PK\1\2", 45, 45, 0, 0, 0, 33, sum, wide, wide, len(name), len(extra), 0, 0, 0, 0, wide)
    central += name + extra
    start = len(local) + size
    record = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, len(central), start)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, start + len(central), 1)
    end = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, wide, wide, 0)
    with open("npz/zip64.npz", "wb") as file:
        file.write(local + contents + central + record + locator + end)
    assert (np.load("npz/zip64.npz")["field"] == made_up("f4")).all()


def mat5():
    arrays = {kind: made_up(kind) for kind in KINDS if kind != "f2"}
    arrays["line"] = made_up("f8", (1, 7))
    arrays["tiny"] = made_up("u1", (1, 3))
    arrays["empty"] = np.zeros((0, 3))
    others = {
        "text": "some text",
        "cell": np.array([[1.0], ["a"]], dtype=object),
        "structure": {"x": 1.0},
        "sparse": scipy.sparse.eye(3).tocsc(),
        "complex": np.ones((2, 2)) * 1j,
    }
    scipy.io.savemat("mat5/plain.mat", others | arrays)
    scipy.io.savemat("mat5/packed.mat", others | arrays, do_compression=True)
    scipy.io.savemat("mat5/one.mat", {"field": made_up("f4")}, do_compression=True)
    for order, name in (("<", "mat5/small_types.mat"), (">", "mat5/big_endian.mat")):
        matlab(name, order)
    four = {"a": A, "b": B, "i": B.astype("i2"), "l": B > 2}
    scipy.io.savemat("mat5/four.mat", four)
    scipy.io.savemat("mat5/four_packed.mat", four, do_compression=True)
    scipy.io.savemat("mat5/others.mat", {"b": B, "t": "text", "c": B * 1j, "s": {"x": 1.0}, "e": np.zeros((0, 2))})
    contents = bytearray(open("mat5/four.mat", "rb").read())
    contents[180] = contents[388] = 0  # a and i lose their names: two arrays are called nothing
    with open("mat5/twice.mat", "wb") as file:
        file.write(contents)


CLASSES = {"f8": 6, "f4": 7, "i1": 8, "u1": 9, "i2": 10, "u2": 11, "i4": 12, "u4": 13, "i8": 14, "u8": 15, "b1": 9}
TYPES = {"i1": 1, "u1": 2, "i2": 3, "u2": 4, "i4": 5, "u4": 6, "f4": 7, "f8": 9, "i8": 12, "u8": 13}


def matlab(path, order):
    """As MATLAB writes: doubles that hold small integers in small types, every other variable packed, both endians."""

    def part(kind, contents, small=True):
        if small and 0 < len(contents) <= 4:
            return struct.pack(order + "I", len(contents) << 16 | kind) + contents.ljust(4, b"\0")
        return struct.pack(order + "II", kind, len(contents)) + contents + b"\0" * (-len(contents) % 8)

    def variable(name, kind, stored, array, packed):
        flags = CLASSES[kind] | (0x200 if kind == "b1" else 0)
        contents = part(6, struct.pack(order + "II", flags, 0))
        contents += part(5, struct.pack(order + f"{array.ndim}i", *array.shape))
        contents += part(1, name.encode())
        contents += part(TYPES[stored], array.astype(order + stored).tobytes("F"))
        whole = part(14, contents)
        return struct.pack(order + "II", 15, len(zlib.compress(whole))) + zlib.compress(whole) if packed else whole

    with open(path, "wb") as file:
        text = b"MATLAB 5.0 MAT-file, made up"
        file.write(text.ljust(124) + struct.pack(order + "H", 0x100) + (b"IM" if order == "<" else b"MI"))
        for number, kind in enumerate(CLASSES):
            array = made_up(kind)
            file.write(variable(kind, kind, "u1" if kind == "b1" else kind, array, number % 2 == 0))
        for number, stored in enumerate(["i1", "i2", "i4"]):
            file.write(variable("f8_in_" + stored, "f8", stored, made_up("i1"), number % 2 == 1))
        file.write(variable("f4_in_i2", "f4", "i2", made_up("i1"), False))
        file.write(variable("a", "f8", "u1", np.array([[10]]), False))
    read = scipy.io.loadmat(path)
    assert (read["f8_in_i2"] == made_up("i1")).all() and (read["u4"] == made_up("u4")).all() and read["a"] == 10


def hdf5():
    with h5py.File("hdf5/plain.h5", "w") as file:
        for kind in KINDS:
            file[kind] = made_up(kind)
        file["big_endian"] = made_up("f8").astype(">f8")
        file["scalar"] = 2.5
        file["line"] = made_up("f4", (7,))
        file["text"] = "some text"
        file["complex"] = np.zeros(2, complex)
        file["group/inner/field"] = made_up("f4")
        file["group/again"] = file["group"]  # a ring
    with h5py.File("hdf5/chunked.h5", "w") as file:
        whole = {"chunks": (2, 3, 2)}
        file.create_dataset("chunked", data=made_up("f4"), **whole)
        file.create_dataset("gzip", data=made_up("f4"), compression="gzip", **whole)
        file.create_dataset("shuffle", data=made_up("f8"), compression="gzip", shuffle=True, **whole)
        file.create_dataset("fletcher", data=made_up("i4"), fletcher32=True, **whole)
        file.create_dataset("lzf", data=made_up("i4"), compression="lzf", **whole)
    with h5py.File("hdf5/latest.h5", "w", libver="latest") as file:
        file.create_dataset("field", data=made_up("f4"), compression="gzip", chunks=(2, 3, 2))
    with h5py.File("hdf5/two.h5", "w") as file:
        file["a"], file["group/b"] = A, B
    with h5py.File("hdf5/packed.h5", "w", libver="latest") as file:
        file.create_dataset("a", data=A, chunks=(1, 2, 2), compression="gzip", shuffle=True, fletcher32=True)
    with h5py.File("hdf5/netcdf.h5", "w") as file:  # value = stored * scale_factor + add_offset, as netCDF-4 has it
        file["t"] = np.array([[0, 100, -100], [200, -32767, 7]], "i2")
        file["t"].attrs.update({"scale_factor": 0.01, "add_offset": np.array([273.15]), "_FillValue": np.int16(-32767)})
        file["h"] = np.array([[1, -999, 2.5], [9.96921e36, 3, 4]], "f4")
        file["h"].attrs.update({"missing_value": -999.0, "_FillValue": np.float32(9.96921e36)})
        file["scalar"] = np.int16(3)
        file["scalar"].attrs.update({"scale_factor": 2.0, "units": "m"})
        file["bytes"] = np.array([-1, 1], "i1")
        file["bytes"].attrs["_Unsigned"] = "true"
    mat73("mat73/all.mat", {kind: made_up(kind) for kind in KINDS if kind != "f2"})


def mat73(path, arrays):
    """As MATLAB writes: a block of 512 bytes, axes reversed, the class of each variable noted."""
    names = {"f8": "double", "f4": "single", "b1": "logical"}
    with h5py.File(path, "w", userblock_size=512) as file:
        for kind, array in arrays.items():
            stored = np.ascontiguousarray((array.astype("u1") if kind == "b1" else array).T)
            data = file.create_dataset(kind, data=stored, compression="gzip" if kind[0] == "f" else None)
            data.attrs["MATLAB_class"] = np.bytes_(names.get(kind, f"{'u' if kind[0] == 'u' else ''}int{8 * int(kind[1])}"))
        text = file.create_dataset("text", data=np.array([[97], [98]], "u2"))
        text.attrs["MATLAB_class"] = np.bytes_("char")
        empty = file.create_dataset("empty", data=np.array([0, 3], "u8"))
        empty.attrs["MATLAB_class"], empty.attrs["MATLAB_empty"] = np.bytes_("double"), np.uint8(1)
        file["#refs#/a"] = np.ones((1, 1))
        cell = file.create_dataset("cell", data=np.array([[file["#refs#/a"].ref]], h5py.ref_dtype))
        cell.attrs["MATLAB_class"] = np.bytes_("cell")
    matlab_header(path)
    with h5py.File("mat73/two.mat", "w", userblock_size=512) as file:
        for name, array in (("a", A), ("b", B)):
            stored = file.create_dataset(name, data=np.ascontiguousarray(array.T), compression="gzip")
            stored.attrs["MATLAB_class"] = np.bytes_("double" if name == "b" else "single")
    matlab_header("mat73/two.mat")


def matlab_header(path):
    with open(path, "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, made up".ljust(124) + b"\x00\x02IM")


def safetensors():
    save_file({kind: made_up(kind) for kind in KINDS}, "safetensors/many.safetensors", {"note": "made up"})
    bits = (made_up("f4").view("u4") >> 16).astype("<u2")  # exact: quarters of small integers
    header = {"bf16": {"dtype": "BF16", "shape": SHAPE, "data_offsets": [0, 120]}}
    header["f8_e4m3"] = {"dtype": "F8_E4M3", "shape": [2], "data_offsets": [120, 122]}
    header = json.dumps(header).encode()
    with open("safetensors/half.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + bits.tobytes() + b"\0\0")
    save_file({"a": A, "b": B, "i": B.astype("i8")}, "safetensors/three.safetensors", {"note": "made up"})
    save_file({"a": A.astype("f2")}, "safetensors/f16.safetensors")


def pytorch():
    kinds = [kind for kind in KINDS if kind not in ("u2", "u4", "u8")]
    torch.save({kind: torch.tensor(made_up(kind)) for kind in kinds}, "pytorch/types.pt")
    number = torch.tensor(made_up("f4"))
    views = {
        "transposed": torch.tensor(made_up("f4").transpose(2, 0, 1).copy()).permute(1, 2, 0),  # 3 x 4 x 5, numbers in another order
        "sliced": torch.tensor(np.repeat(made_up("f8"), 2, axis=2))[:, :, ::2],
        "rows": torch.cat([number, number])[3:],
        "repeated": torch.zeros(1).expand(7),
        "complex": torch.complex(number, -number),
        "bf16": number.to(torch.bfloat16),
        "u2": torch.tensor(made_up("u2")),
    }
    torch.save(views, "pytorch/views.pt")
    lazy = {"conjugated": torch.complex(number, -number).conj(), "negated": torch.complex(number, number).conj().imag}
    torch.save(lazy, "pytorch/lazy.pt")
    nested = {"train": {"x": torch.tensor(A), "y": [torch.tensor(B), 2.5]}, "note": "made up", 3: torch.nn.Parameter(torch.tensor(B))}
    torch.save(nested, "pytorch/nested.pt")
    torch.save(torch.tensor(A), "pytorch/one.pt")
    torch.save({"epoch": 3, "array": A}, "pytorch/others.pt")
    torch.save(torch.tensor(A), "pytorch/old.pt", _use_new_zipfile_serialization=False)


def structures():
    scipy.io.savemat("mat5/structures.mat", {"run": {"u": B, "mesh": {"x": A}, "note": "made up"}, "list": np.array([{"a": 1}, {"a": 2}])})
    scipy.io.savemat("mat5/structures_packed.mat", {"run": {"u": B, "c": B + 1j}}, do_compression=True)


for write in (npy, npz, mat5, structures, hdf5, safetensors, pytorch):
    write()
