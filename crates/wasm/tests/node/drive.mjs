// Runs docs/browser/worker.js as a browser would: `drive.mjs PAGE FOLDER predict solve …` sends it the files 0.in, 1.in, … of a folder
// with these requests and writes its answers to 0.out, or the sentences of failures to 0.err. It prints how long each took.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import vm from "node:vm";

const [page, folder, ...kinds] = process.argv.slice(2);
let answered = null;
globalThis.self = { postMessage: message => answered(message) };
globalThis.fetch = async file => {
  const bytes = readFileSync(join(page, file));
  return { ok: true, arrayBuffer: async () => bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) };
};
vm.runInThisContext(readFileSync(join(page, "worker.js"), "utf8"), { filename: "worker.js" });

const ask = data => new Promise(resolve => {
  answered = resolve;
  self.onmessage({ data });
});

const started = performance.now(), opened = await ask({ call: 0, kind: "open", model: "darcy.safetensors" });
if (opened.failure) throw new Error(opened.failure);
console.log(`open: ${(performance.now() - started).toFixed(0)} ms`);
for (const [number, kind] of kinds.entries()) {
  const answer = await ask({ call: number + 1, kind, bytes: readFileSync(join(folder, `${number}.in`)) });
  if (answer.failure) writeFileSync(join(folder, `${number}.err`), answer.failure);
  else writeFileSync(join(folder, `${number}.out`), answer.bytes);
  console.log(`${kind}: ${answer.failure ?? `${answer.computed.toFixed(1)} ms`}`);
}
