// Requests to the server that served this page, with its token where it asks for one.

import { readNpy } from "./npy.js";

export const KINDS = { npy: "application/x-npy", npz: "application/x-npz", vtu: "application/vnd.vtk" };
const TOKEN = "lamo-token";

// Asks for the token; resolves when the form was sent, rejects when it was closed.
function askForToken(refused) {
  const dialog = document.getElementById("token");
  dialog.querySelector(".refused").hidden = !refused;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve, reject) => {
    dialog.addEventListener("close", () => {
      const field = dialog.querySelector("input"), token = field.value.trim();
      field.value = "";
      if (dialog.returnValue !== "send" || !token) return reject(new Error("This server needs a token. Reload the page to enter it."));
      sessionStorage.setItem(TOKEN, token);
      resolve();
    }, { once: true });
  });
}

let asking = null; // requests that are refused at the same time ask once

async function send(path, options) {
  const token = sessionStorage.getItem(TOKEN), headers = { ...options.headers };
  if (token) headers.Authorization = `Bearer ${token}`;
  let answer;
  try {
    answer = await fetch(path, { ...options, headers });
  } catch (failure) {
    throw new Error("The server does not answer. Start it again with `lamo serve`.");
  }
  if (answer.status !== 401) return answer;
  asking = asking || askForToken(token !== null).finally(() => (asking = null));
  await asking;
  return send(path, options);
}

// An answer, or the sentence of the server as an error.
async function request(path, options = {}) {
  const answer = await send(path, options);
  if (answer.ok) return answer;
  const body = await answer.text();
  let sentence = `The server answered ${answer.status}.`;
  try {
    sentence = JSON.parse(body).error || sentence;
  } catch { /* not JSON: the status is all there is to say */ }
  throw Object.assign(new Error(sentence), { status: answer.status });
}

const path = (name, rest = "") => `v1/models/${encodeURIComponent(name)}${rest}`;

// Milliseconds that the server says it computed; null where it does not.
function duration(answer) {
  const found = /dur=([0-9.]+)/.exec(answer.headers.get("server-timing") || "");
  return found ? Number(found[1]) : null;
}

// The cards of all models.
export const models = async () => (await (await request("v1/models")).json()).models;

// The card of one model.
export const card = async name => (await request(path(name))).json();

// Posts a file of one kind and takes an answer of another: { bytes, milliseconds, computed }.
async function post(where, bytes, kind, accept) {
  const started = performance.now(), accepted = accept ? { Accept: KINDS[accept] } : {};
  const answer = await request(where, { method: "POST", body: bytes, headers: { "Content-Type": KINDS[kind], ...accepted } });
  const received = new Uint8Array(await answer.arrayBuffer());
  return { bytes: received, milliseconds: performance.now() - started, computed: duration(answer) };
}

// The prediction of a file, of the same kind unless another is asked for.
export const predict = (name, bytes, kind, accept = null) => post(path(name, "/predict"), bytes, kind, accept);

// The true solution of a permeability, by the solver.
export async function solve(name, bytes) {
  const answer = await post(path(name, "/solve"), bytes, "npy", "npy");
  return { ...answer, array: readNpy(answer.bytes, "the solution") };
}

// The npz file of a test sample.
export const sample = async (name, index) => new Uint8Array(await (await request(path(name, `/samples/${index}`))).arrayBuffer());
