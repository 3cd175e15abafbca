// What the arrays of a sample mean: inputs, truth, positions and triangles; and what the server predicts for them.

import * as api from "./api.js";
import { readNpy, readNpz } from "./npy.js";
import { readVtu } from "./vtu.js";

const GEOMETRY = ["positions", "triangles"];
const ENDING = "_predicted"; // of the names of predictions in meshes

// Of fields, those that some arrays have: { kind, array }.
function ofKinds(kinds, arrays) {
  const known = kinds.filter(kind => arrays.has(kind.name) && !GEOMETRY.includes(kind.name));
  return known.map(kind => ({ kind, array: arrays.get(kind.name) }));
}

// The truth of outputs; where an input has the same name, as in a time series that is continued, it is `NAME_truth`.
function truthIn(card, arrays) {
  const shared = output => card.inputs.some(input => input.name === output.name);
  const name = output => (shared(output) ? `${output.name}_truth` : output.name);
  return card.outputs.filter(output => arrays.has(name(output))).map(kind => ({ kind, array: arrays.get(name(kind)) }));
}

const parted = (card, arrays) => ({
  positions: arrays.get("positions"), triangles: arrays.get("triangles"), inputs: ofKinds(card.inputs, arrays), truth: truthIn(card, arrays),
});

// A test sample of the server; its file can be sent back as it is.
export async function asked(card, index) {
  const bytes = await api.sample(card.id, index);
  return { bytes, kind: "npz", ...parted(card, await readNpz(bytes, `sample ${index}`)) };
}

// A file of the user.
export async function opened(card, name, bytes) {
  const kind = (/\.(npy|npz|vtu)$/i.exec(name) || [])[1]?.toLowerCase();
  if (!kind) throw new Error(`${name}: expected a file that ends with npy, npz or vtu`);
  if (kind === "vtu") return { bytes, kind, inputs: [], truth: [] }; // the answer holds the mesh again
  const single = card.inputs.length === 1 ? card.inputs[0] : { name: "positions" };
  const arrays = kind === "npz" ? await readNpz(bytes, name) : new Map([[single.name, readNpy(bytes, name)]]);
  return { bytes, kind, ...parted(card, arrays) };
}

// The prediction of a sample: { outputs, truth, geometry, milliseconds, computed }.
export async function predicted(card, sample) {
  const { kind } = sample, answer = await api.predict(card.id, sample.bytes, kind, kind);
  if (kind === "vtu") return { ...answer, ...(await meshOf(card, answer.bytes)) };
  const name = "the prediction", zipped = answer.bytes[0] === 0x50; // several outputs come as npz in any case
  const arrays = zipped ? await readNpz(answer.bytes, name) : new Map([[card.outputs[0].name, readNpy(answer.bytes, name)]]);
  const outputs = ofKinds(card.outputs, arrays);
  if (!outputs.length && arrays.size === 1) outputs.push({ kind: card.outputs[0], array: [...arrays.values()][0] });
  return { ...answer, outputs, truth: null, geometry: {} };
}

async function meshOf(card, bytes) {
  const { positions, triangles, arrays } = await readVtu(bytes, "the prediction");
  const predicted = [...arrays].filter(([name]) => name.endsWith(ENDING)).map(([name, array]) => [name.slice(0, -ENDING.length), array]);
  return { outputs: ofKinds(card.outputs, new Map(predicted)), truth: ofKinds(card.outputs, arrays), geometry: { positions, triangles } };
}
