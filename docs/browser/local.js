// The requests of the page, answered by workers in this browser. The functions are those of the page's api.js.

import { readNpy } from "./page/npy.js";

const MODEL = "darcy";

const failed = sentence => Object.assign(new Error(sentence), { status: 500 });

// A worker as a function from requests to promises of answers.
function worker() {
  const thread = new Worker(new URL("worker.js", import.meta.url)), waiting = new Map();
  let last = 0;
  thread.onmessage = ({ data: { call, failure, ...answer } }) => {
    const { resolve, reject } = waiting.get(call);
    waiting.delete(call);
    if (failure) reject(failed(failure));
    else resolve(answer);
  };
  thread.onerror = () => {
    for (const { reject } of waiting.values()) reject(failed("worker.js could not be loaded. Serve the whole folder."));
    waiting.clear();
  };
  return message => new Promise((resolve, reject) => {
    waiting.set(++last, { resolve, reject });
    thread.postMessage({ call: last, ...message });
  });
}

// A worker that has the model open.
function opened() {
  const ask = worker();
  return { ask, card: ask({ kind: "open", model: `${MODEL}.safetensors` }) };
}

const model = opened();
let solver = null; // a thread of its own: predictions follow the pen while it works

async function timed(ask, message) {
  const started = performance.now(), answer = await ask(message);
  return { ...answer, milliseconds: performance.now() - started };
}

// The card of the model. The receipt of its evaluation lies beside the model; a page without it works, too.
export async function card() {
  const receipt = await fetch(`${MODEL}.json`).then(answer => (answer.ok ? answer.json() : null)).catch(() => null);
  const found = JSON.parse(new TextDecoder().decode((await model.card).bytes));
  const error = receipt ? receipt.evaluation.mean_of_outputs ?? receipt.evaluation.relative_l2 : null;
  return { ...found, id: MODEL, device: "this browser", error, receipt };
}

// The prediction of a file of arrays: { bytes, milliseconds, computed }.
export const predict = (name, bytes) => timed(model.ask, { kind: "predict", bytes });

// The true solution of a permeability, by the solver.
export async function solve(name, bytes) {
  solver = solver || opened();
  await solver.card;
  const answer = await timed(solver.ask, { kind: "solve", bytes });
  return { ...answer, array: readNpy(answer.bytes, "the solution") };
}
