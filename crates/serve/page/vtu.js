// Meshes of VTK (XML, unstructured): read as the server writes them, text or base64 inside the elements, packed by zlib or not;
// written as text.

import { inflate } from "./npy.js";

const TYPES = {
  Float32: [Float32Array, 4], Float64: [Float64Array, 8], Int8: [Int8Array, 1], UInt8: [Uint8Array, 1], Int16: [Int16Array, 2], UInt16: [Uint16Array, 2],
  Int32: [Int32Array, 4], UInt32: [Uint32Array, 4], Int64: [BigInt64Array, 8], UInt64: [BigUint64Array, 8],
};
// The faces of a cell by its number in VTK; cells with curved sides are drawn with straight ones.
const TETRAHEDRON = [[0, 1, 2], [0, 1, 3], [1, 2, 3], [0, 2, 3]];
const HEXAHEDRON = [[0, 1, 2, 3], [4, 5, 6, 7], [0, 1, 5, 4], [1, 2, 6, 5], [2, 3, 7, 6], [3, 0, 4, 7]];
const WEDGE = [[0, 1, 2], [3, 4, 5], [0, 1, 4, 3], [1, 2, 5, 4], [2, 0, 3, 5]];
const PYRAMID = [[0, 1, 2, 3], [0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]];
const SOLIDS = { 10: TETRAHEDRON, 24: TETRAHEDRON, 12: HEXAHEDRON, 25: HEXAHEDRON, 13: WEDGE, 14: PYRAMID };
const FLAT = { 5: [0, 1, 2], 22: [0, 1, 2], 9: [0, 1, 2, 3], 23: [0, 1, 2, 3], 8: [0, 1, 3, 2] };

const binary = words => Uint8Array.from(atob(words), letter => letter.charCodeAt(0));
const ownText = element => Array.from(element.childNodes, node => (node.nodeType === Node.TEXT_NODE ? node.data : "")).join("").trim(); // VTK nests keys
const numbers = array => (array instanceof BigInt64Array || array instanceof BigUint64Array ? Float64Array.from(array, Number) : array);

// The bytes of base64 words inside an element; the sizes stand in front, in words of their own where blocks are packed.
async function unpacked(words, wide, packed) {
  const size = wide ? 8 : 4, one = (bytes, at) => {
    const view = new DataView(bytes.buffer);
    return wide ? Number(view.getBigUint64(8 * at, true)) : view.getUint32(4 * at, true);
  };
  if (!packed) return binary(words).slice(size);
  const letters = bytes => 4 * Math.ceil(bytes / 3), blocks = one(binary(words.slice(0, letters(3 * size))), 0);
  if (!blocks) return new Uint8Array(0);
  const head = letters((3 + blocks) * size), sizes = binary(words.slice(0, head)), body = binary(words.slice(head)), parts = [];
  for (let block = 0, at = 0; block < blocks; block++) {
    const end = at + one(sizes, 3 + block);
    parts.push(await inflate(body.slice(at, end), "deflate"));
    at = end;
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

// The array of a DataArray: { shape, values }.
async function arrayOf(element, root) {
  const [name, type, format] = ["Name", "type", "format"].map(key => element.getAttribute(key));
  const [Type, size] = TYPES[type] || [], words = ownText(element);
  if (!Type || !["ascii", "binary"].includes(format)) throw new Error(`array ${name}: expected numbers as text or base64, found ${type}, ${format}`);
  let values;
  if (format === "ascii") {
    values = Float64Array.from(words ? words.split(/\s+/) : [], Number);
  } else {
    const bytes = await unpacked(words.replace(/\s+/g, ""), root.getAttribute("header_type") === "UInt64", root.hasAttribute("compressor"));
    values = numbers(new Type(bytes.buffer, 0, Math.floor(bytes.length / size)));
  }
  const components = Number(element.getAttribute("NumberOfComponents")) || 1;
  return { shape: components > 1 ? [values.length / components, components] : [values.length], values };
}

// The triangles of the outside of cells: flat ones, and the faces that only one solid cell has.
function outside(connectivity, offsets, types) {
  const triangles = [], faces = new Map();
  const fan = corners => {
    for (let last = 2; last < corners.length; last++) triangles.push(corners[0], corners[last - 1], corners[last]);
  };
  types.forEach((type, cell) => {
    const corners = connectivity.slice(cell ? offsets[cell - 1] : 0, offsets[cell]);
    if (type === 7) return fan(corners);
    if (FLAT[type]) return fan(FLAT[type].map(corner => corners[corner]));
    for (const face of SOLIDS[type] || []) {
      const own = face.map(corner => corners[corner]), key = own.slice().sort((one, other) => one - other).join(" ");
      if (!faces.delete(key)) faces.set(key, own);
    }
  });
  for (const face of faces.values()) fan(face);
  return Uint32Array.from(triangles);
}

// The points, the outer triangles and the arrays on the points of a file. A mesh in a plane has two axes.
export async function readVtu(bytes, name = "the file") {
  const page = new DOMParser().parseFromString(new TextDecoder().decode(bytes), "application/xml"), root = page.documentElement;
  const piece = page.querySelector("UnstructuredGrid > Piece");
  if (!piece) throw new Error(`${name}: expected an unstructured mesh of VTK, found a file of another kind`);
  const find = async path => {
    const element = piece.querySelector(path);
    if (!element) throw new Error(`${name}: expected ${path}, found nothing`);
    return arrayOf(element, root);
  };
  const { values: points } = await find("Points > DataArray");
  const cell = part => find(`Cells > DataArray[Name="${part}"]`);
  const [connectivity, offsets, types] = [await cell("connectivity"), await cell("offsets"), await cell("types")].map(array => array.values);
  const flat = points.every((value, at) => at % 3 !== 2 || value === 0);
  const positions = Float32Array.from(flat ? points.filter((_, at) => at % 3 !== 2) : points);
  const arrays = new Map();
  for (const element of piece.querySelectorAll("PointData > DataArray")) arrays.set(element.getAttribute("Name"), await arrayOf(element, root));
  const triangles = outside(connectivity, offsets, types);
  const shaped = (values, axes) => ({ shape: [values.length / axes, axes], values });
  return { positions: shaped(positions, flat ? 2 : 3), triangles: shaped(triangles, 3), arrays };
}

const escaped = words => words.replace(/[&<>"]/g, letter => `&#${letter.charCodeAt(0)};`);

// The bytes of a file with points, triangles (or single points) and arrays `{ name, channels, values }` on the points.
export function writeVtu(positions, axes, triangles, arrays) {
  const count = positions.length / axes, list = values => Array.from(values).join(" ");
  const array = (type, name, channels, values) =>
    `<DataArray type="${type}" Name="${escaped(name)}" NumberOfComponents="${channels}" format="ascii">${list(values)}</DataArray>`;
  const points = Array.from({ length: 3 * count }, (_, at) => (at % 3 < axes ? positions[Math.floor(at / 3) * axes + at % 3] : 0));
  const corners = triangles ? 3 : 1, cells = triangles ? triangles.length / 3 : count;
  const each = rule => Array.from({ length: cells }, (_, cell) => rule(cell));
  const fields = arrays.map(({ name, channels, values }) => array("Float32", name, channels, values));
  const lines = [
    '<?xml version="1.0"?>', '<VTKFile type="UnstructuredGrid" version="1.0" byte_order="LittleEndian">', "<UnstructuredGrid>",
    `<Piece NumberOfPoints="${count}" NumberOfCells="${cells}">`, "<PointData>", ...fields, "</PointData>",
    "<Points>", array("Float32", "Points", 3, points), "</Points>", "<Cells>", array("Int32", "connectivity", 1, triangles || each(cell => cell)),
    array("Int32", "offsets", 1, each(cell => corners * (cell + 1))), array("UInt8", "types", 1, each(() => (triangles ? 5 : 1))), "</Cells>",
    "</Piece>", "</UnstructuredGrid>", "</VTKFile>", "",
  ];
  return new TextEncoder().encode(lines.join("\n"));
}
