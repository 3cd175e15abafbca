// Claims about npy.js and vtu.js that need no server; the names of those that fail are the value.
(async () => {
  const { readNpy, writeNpy, readNpz, writeNpz, readZip } = await import("./npy.js");
  const { readVtu, writeVtu } = await import("./vtu.js");
  const failed = [], claim = (name, holds) => holds || failed.push(name);
  const refusal = async act => {
    try {
      await act();
      return "";
    } catch (failure) {
      return failure.message;
    }
  };
  // An npy file with any header.
  const file = (descr, order, shape, values) => {
    const text = `{'descr': '${descr}', 'fortran_order': ${order}, 'shape': ${shape}, }\n`;
    const bytes = new Uint8Array(10 + text.length + values.byteLength);
    bytes.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, text.length & 255, text.length >> 8]);
    bytes.set(new TextEncoder().encode(text), 10);
    bytes.set(new Uint8Array(values.buffer), 10 + text.length);
    return bytes;
  };
  const list = array => Array.from(array.values).join(" ");

  for (const values of [Float32Array.of(1.5, NaN, -0), Float64Array.of(1e300, 2, 3), Uint8Array.of(0, 255, 7), Int32Array.of(-5, 6, 7)]) {
    const back = readNpy(writeNpy({ shape: [3, 1], values }));
    claim(`${values.constructor.name} comes back`, list(back) === Array.from(values).join(" ") && back.shape.join() === "3,1");
  }
  claim("data begin at a multiple of 64", (writeNpy({ shape: [], values: Float32Array.of(1) }).length - 4) % 64 === 0);
  claim("Fortran order", list(readNpy(file("<f4", "True", "(2, 3)", Float32Array.of(1, 4, 2, 5, 3, 6)))) === "1 2 3 4 5 6");
  claim("big-endian", list(readNpy(file(">i2", "False", "(2,)", Uint8Array.of(1, 2, 255, 254)))) === "258 -2");
  claim("half precision", list(readNpy(file("<f2", "False", "(5,)", Uint16Array.of(0x3c00, 0xc000, 0x0001, 0x7c00, 0x7e00)))) === `1 -2 ${2 ** -24} Infinity NaN`);
  claim("64-bit integers", list(readNpy(file("<i8", "False", "(2,)", BigInt64Array.of(-1n, 9007199254740991n)))) === "-1 9007199254740991");
  claim("booleans", list(readNpy(file("|b1", "False", "(2,)", Uint8Array.of(1, 0)))) === "1 0");

  claim("cut off", (await refusal(() => readNpy(file("<f8", "False", "(9,)", Float64Array.of(1)), "x"))) === "x: the header promises 9 values, the file holds 1");
  claim("complex numbers", (await refusal(() => readNpy(file("<c8", "False", "(1,)", Float64Array.of(1)), "x"))).includes("found the type <c8"));
  claim("another kind", (await refusal(() => readNpy(new TextEncoder().encode("PK\x03\x04 and more"), "x"))).includes("expected an npy array"));
  claim("too large", (await refusal(() => readNpy(file("<f4", "False", "(99999, 99999)", Float32Array.of(1)), "x"))).includes("at most"));

  const archive = writeNpz(new Map([["a", { shape: [2], values: Float32Array.of(1, 2) }], ["\u00fcber b", { shape: [1], values: Uint8Array.of(3) }]]));
  claim("names of members", [...(await readNpz(archive)).keys()].join() === "a,\u00fcber b");
  claim("other members", (await readZip(archive)).has("a.npy"));
  for (let size = 0; size < archive.length; size += 7) {
    claim(`an archive of ${size} bytes is refused`, (await refusal(() => readNpz(archive.slice(0, size), "x"))).startsWith("x: "));
  }
  const wrong = archive.slice();
  wrong[wrong.length - 22 - 100] ^= 255;
  await refusal(() => readNpz(wrong)); // any sentence, or other names; it ends

  const square = writeVtu(Float32Array.of(0, 0, 1, 0, 1, 1, 0, 1), 2, Uint32Array.of(0, 1, 2, 0, 2, 3), [{ name: "a<b", channels: 2, values: Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8) }]);
  const mesh = await readVtu(square);
  claim("positions in the plane", mesh.positions.shape.join() === "4,2" && list(mesh.positions) === "0 0 1 0 1 1 0 1");
  claim("triangles", list(mesh.triangles) === "0 1 2 0 2 3");
  claim("arrays of a mesh", list(mesh.arrays.get("a<b")) === "1 2 3 4 5 6 7 8" && mesh.arrays.get("a<b").shape.join() === "4,2");
  claim("no mesh", (await refusal(() => readVtu(new TextEncoder().encode("<a/>"), "x"))).startsWith("x: expected an unstructured mesh"));
  return failed;
})()
