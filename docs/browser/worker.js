// A model in a thread of its own, so that the page stays responsive. It calls the functions that lamo.wasm exports
// (crates/wasm/src/border.rs): write a request, call, read the answer.

let loading = null; // the bytes of the program and of the model
let library = null; // the exports of the program, with the model open

async function load(file) {
  const answer = await fetch(file).catch(() => null);
  if (!answer || !answer.ok) throw new Error(`${file} could not be loaded${answer ? ` (${answer.status})` : ""}. Serve the whole folder.`);
  return new Uint8Array(await answer.arrayBuffer());
}

// The bytes behind a gzip file. Some servers declare such a file as compressed, and then the browser has unpacked it already.
async function unpacked(bytes) {
  if (bytes[0] !== 0x1f) return bytes;
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// The answer to a request, or the sentence of the failure as an error.
function call(exports, name, request) {
  const room = exports.lamo_room(request.length);
  if (!room) throw new Error(`${request.length} bytes do not fit into the memory of this page.`);
  new Uint8Array(exports.memory.buffer, room, request.length).set(request);
  let failed = 1;
  try {
    failed = exports[name]();
  } catch {
    library = null; // a trap leaves the program in no known state: the next call starts it again
  }
  const answer = new Uint8Array(exports.memory.buffer, exports.lamo_answer(), exports.lamo_answer_length()).slice();
  if (failed) throw new Error(new TextDecoder().decode(answer) || "The program stopped.");
  return answer;
}

// Starts the program and opens the model; the answer is the card.
async function open() {
  const [program, model] = await loading;
  const { instance } = await WebAssembly.instantiate(program).catch(failure => {
    throw new Error(`This browser cannot run lamo.wasm: ${failure.message}. It needs WebAssembly with 128-bit vectors.`);
  });
  const card = call(instance.exports, "lamo_open", model);
  library = instance.exports;
  return card;
}

async function answer({ kind, model, bytes }) {
  if (kind === "open") {
    loading = Promise.all([load("lamo.wasm.gz").then(unpacked), load(model)]);
    return { bytes: await open() };
  }
  if (!library) await open();
  const started = performance.now(), answered = call(library, `lamo_${kind}`, bytes);
  return { bytes: answered, computed: performance.now() - started };
}

let queue = Promise.resolve(); // one request at a time
self.onmessage = ({ data: { call: number, ...request } }) => {
  queue = queue.then(() => answer(request)).then(
    found => self.postMessage({ call: number, ...found }, [found.bytes.buffer]),
    failure => self.postMessage({ call: number, failure: failure.message }),
  );
};
