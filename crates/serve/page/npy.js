// Arrays of numbers as npy files, and several of them as npz archives (zip files with npy members).
//
// An array is { shape, values }: values in C order, as one of the typed arrays of the language.

const KINDS = {
  f2: [2, (view, at, little) => half(view.getUint16(at, little)), Float32Array],
  f4: [4, (view, at, little) => view.getFloat32(at, little), Float32Array],
  f8: [8, (view, at, little) => view.getFloat64(at, little), Float64Array],
  i1: [1, (view, at) => view.getInt8(at), Int8Array],
  i2: [2, (view, at, little) => view.getInt16(at, little), Int16Array],
  i4: [4, (view, at, little) => view.getInt32(at, little), Int32Array],
  i8: [8, (view, at, little) => Number(view.getBigInt64(at, little)), Float64Array],
  u1: [1, (view, at) => view.getUint8(at), Uint8Array],
  b1: [1, (view, at) => view.getUint8(at), Uint8Array],
  u2: [2, (view, at, little) => view.getUint16(at, little), Uint16Array],
  u4: [4, (view, at, little) => view.getUint32(at, little), Uint32Array],
  u8: [8, (view, at, little) => Number(view.getBigUint64(at, little)), Float64Array],
};
const DESCRIPTIONS = new Map([
  [Float32Array, "<f4"], [Float64Array, "<f8"], [Uint8Array, "|u1"], [Int32Array, "<i4"], [Uint32Array, "<u4"],
]);
const MAGIC = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59]; // \x93NUMPY
const LARGEST = 2 ** 28; // values of one array

// A number of 16 bits (IEEE 754 binary16).
function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
}

const bytesOf = data => (data instanceof Uint8Array ? data : new Uint8Array(data));
const count = shape => shape.reduce((product, extent) => product * extent, 1);

// What an npy header says: { descr, fortran, shape }.
function header(text, name) {
  const descr = /'descr'\s*:\s*'([^']*)'/.exec(text), order = /'fortran_order'\s*:\s*(True|False)/.exec(text);
  const shape = /'shape'\s*:\s*\(([^)]*)\)/.exec(text);
  if (!descr || !order || !shape) throw new Error(`${name}: expected the header of an npy array of plain numbers, found ${text.trim().slice(0, 80)}`);
  const extents = shape[1].split(",").map(word => word.trim()).filter(Boolean).map(Number);
  return { descr: descr[1], fortran: order[1] === "True", shape: extents };
}

// Values in Fortran order, put into C order.
function transposed(values, shape) {
  const result = new values.constructor(values.length), index = new Array(shape.length).fill(0);
  for (let at = 0; at < values.length; at++) { // `index` counts with the first axis fastest
    let place = 0;
    for (let axis = 0; axis < shape.length; axis++) place = place * shape[axis] + index[axis];
    result[place] = values[at];
    for (let axis = 0; axis < shape.length && ++index[axis] === shape[axis]; axis++) index[axis] = 0;
  }
  return result;
}

// The array of an npy file.
export function readNpy(data, name = "the file") {
  const bytes = bytesOf(data), view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (bytes.length < 12 || MAGIC.some((byte, at) => bytes[at] !== byte)) throw new Error(`${name}: expected an npy array, found a file of another kind`);
  const wide = bytes[6] > 1, size = wide ? view.getUint32(8, true) : view.getUint16(8, true), start = (wide ? 12 : 10) + size;
  if (start > bytes.length) throw new Error(`${name}: the header ends after the file`);
  const { descr, fortran, shape } = header(new TextDecoder().decode(bytes.subarray(wide ? 12 : 10, start)), name);
  const kind = KINDS[descr.slice(1)], length = count(shape);
  if (!kind) throw new Error(`${name}: expected real numbers, found the type ${descr}`);
  if (!(length <= LARGEST)) throw new Error(`${name}: expected at most ${LARGEST} values, found the shape ${words(shape)}`);
  const [width, read, Type] = kind;
  if (bytes.length - start < length * width) {
    throw new Error(`${name}: the header promises ${length} values, the file holds ${Math.floor((bytes.length - start) / width)}`);
  }
  const little = descr[0] !== ">", plain = DESCRIPTIONS.get(Type) === descr;
  const copied = () => new Type(bytes.slice(start, start + length * width).buffer);
  const values = plain ? copied() : Type.from({ length }, (_, at) => read(view, start + at * width, little));
  return { shape, values: fortran && shape.length > 1 ? transposed(values, shape) : values };
}

// The bytes of an npy file.
export function writeNpy({ shape, values }) {
  const descr = DESCRIPTIONS.get(values.constructor);
  if (!descr) throw new Error(`cannot write ${values.constructor.name} as npy`);
  const tuple = shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(", ")})`;
  const text = `{'descr': '${descr}', 'fortran_order': False, 'shape': ${tuple}, }`;
  const start = Math.ceil((10 + text.length + 1) / 64) * 64, bytes = new Uint8Array(start + values.byteLength);
  bytes.set([...MAGIC, 1, 0, (start - 10) & 255, (start - 10) >> 8]);
  bytes.set(new TextEncoder().encode(`${text.padEnd(start - 11)}\n`), 10);
  bytes.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), start);
  return bytes;
}

// `85 x 85`, or `one number`.
export const words = shape => (shape.length ? shape.join(" x ") : "one number");

// The bytes behind a deflated stream; `deflate-raw` inside zip files, `deflate` with the header of zlib.
export async function inflate(bytes, format) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream(format));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// The members of a zip file: a map from names to bytes.
export async function readZip(data, name = "the file") {
  const bytes = bytesOf(data), view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let end = bytes.length - 22; // the record at the end may have a comment behind it
  const earliest = Math.max(0, end - 65535);
  while (end >= earliest && view.getUint32(end, true) !== 0x06054b50) end--;
  if (end < earliest) throw new Error(`${name}: expected a zip archive, found a file of another kind or a part of one`);
  const members = new Map(), refuse = reason => { throw new Error(`${name}: ${reason}`); };
  let at = view.getUint32(end + 16, true);
  for (let left = view.getUint16(end + 10, true); left > 0; left--) {
    if (at + 46 > bytes.length || view.getUint32(at, true) !== 0x02014b50) refuse("the directory of the archive is damaged");
    const [method, packed, size] = [view.getUint16(at + 10, true), view.getUint32(at + 20, true), view.getUint32(at + 24, true)];
    const [nameSize, extra, comment] = [28, 30, 32].map(place => view.getUint16(at + place, true));
    const local = view.getUint32(at + 42, true), member = new TextDecoder().decode(bytes.subarray(at + 46, at + 46 + nameSize));
    if (packed === 0xffffffff || local + 30 > bytes.length) refuse(`member ${member} is too large or outside of the file`);
    const start = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
    const content = bytes.subarray(start, start + packed);
    if (content.length < packed) refuse(`member ${member} is cut off`);
    if (method !== 0 && method !== 8) refuse(`member ${member} is packed by method ${method}, expected stored or deflated`);
    const open = method === 0 ? content : await inflate(content, "deflate-raw").catch(() => refuse(`member ${member} is damaged`));
    if (open.length !== size) refuse(`member ${member} has ${open.length} bytes, the directory says ${size}`);
    members.set(member, open);
    at += 46 + nameSize + extra + comment;
  }
  return members;
}

const CRC = Uint32Array.from({ length: 256 }, (_, byte) => {
  for (let bit = 0; bit < 8; bit++) byte = byte & 1 ? 0xedb88320 ^ (byte >>> 1) : byte >>> 1;
  return byte;
});

function checksum(bytes) {
  let sum = 0xffffffff;
  for (let at = 0; at < bytes.length; at++) sum = CRC[(sum ^ bytes[at]) & 255] ^ (sum >>> 8);
  return (sum ^ 0xffffffff) >>> 0;
}

// A zip file with members that are stored as they are.
export function writeZip(members) {
  const parts = [], directory = [];
  let offset = 0;
  for (const [name, bytes] of members) {
    const label = new TextEncoder().encode(name), common = new Uint8Array(26), view = new DataView(common.buffer);
    [20, 0x800, 0, 0, 33].forEach((value, at) => view.setUint16(2 * at, value, true)); // 1 January 1980, names in UTF-8
    [checksum(bytes), bytes.length, bytes.length].forEach((value, at) => view.setUint32(10 + 4 * at, value, true));
    view.setUint16(22, label.length, true);
    const place = new Uint8Array(14);
    new DataView(place.buffer).setUint32(10, offset, true);
    directory.push(Uint8Array.of(0x50, 0x4b, 1, 2, 20, 0), common, place, label);
    parts.push(Uint8Array.of(0x50, 0x4b, 3, 4), common, label, bytes);
    offset += 30 + label.length + bytes.length;
  }
  const size = directory.reduce((sum, part) => sum + part.length, 0), end = new Uint8Array(22), view = new DataView(end.buffer);
  view.setUint32(0, 0x06054b50, true);
  for (const at of [8, 10]) view.setUint16(at, members.size, true);
  view.setUint32(12, size, true);
  view.setUint32(16, offset, true);
  const all = new Uint8Array(offset + size + 22);
  let at = 0;
  for (const part of [...parts, ...directory, end]) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

// The arrays of an npz archive: a map from names to arrays.
export async function readNpz(data, name = "the file") {
  const members = await readZip(data, name), arrays = new Map();
  for (const [member, bytes] of members) {
    if (member.endsWith(".npy")) arrays.set(member.slice(0, -4), readNpy(bytes, `${name}, ${member}`));
  }
  return arrays;
}

// The bytes of an npz archive.
export const writeNpz = arrays => writeZip(new Map([...arrays].map(([name, array]) => [`${name}.npy`, writeNpy(array)])));
