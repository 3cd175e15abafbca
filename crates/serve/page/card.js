// The card of a model: what it was trained on, its size, its error and what that means, its receipt, how to call it.

import { button, make, text, unitText, whole } from "./dom.js";

const short = value => text(Number(value.toPrecision(3)));

// `85 x 85 points`, or what else the points are.
function gridWords(grid) {
  const { kind, points } = grid;
  if (kind === "plane") return `${grid.rows} \u00d7 ${grid.columns} points`;
  if (kind === "volume") return `${grid.rows} \u00d7 ${grid.columns} \u00d7 ${grid.layers} points`;
  if (kind === "line") return `${whole(points)} points on a line`;
  return points ? `${whole(points)} points` : "any points";
}

// `displacement (3) [mm], stress [MPa]`.
function fieldWords(fields) {
  const one = ({ name, unit, channels }) => name + (channels > 1 ? ` (${channels})` : "") + (unit && unit !== "1" ? ` [${unit}]` : "");
  return fields.map(one).join(", ");
}

// The error in words: how large, of what, over how many samples.
function errorMeaning(model) {
  const evaluation = model.receipt && model.receipt.evaluation, samples = evaluation && evaluation.distribution && evaluation.distribution.count;
  const mean = evaluation && evaluation.mean_of_outputs ? `Mean relative L2 error of its ${model.outputs.length} outputs` : "Mean relative L2 error";
  const over = samples ? ` on ${whole(samples)} test samples that it was not trained on` : " on test samples";
  const whose = model.outputs.length > 1 ? "a field\u2019s" : "the field\u2019s";
  return `${mean}${over}: the prediction is off by ${short(100 * model.error)} % of ${whose} size, in the root mean square.`;
}

// The header of a model.
export function card(model) {
  const facts = [
    ["error", model.error === null ? "not measured" : short(model.error), "main"],
    ["model", model.model], ["parameters", whole(model.parameters)], ["grid", gridWords(model.grid)],
    ["operator", `${fieldWords(model.inputs) || "positions"} \u2192 ${fieldWords(model.outputs)}`],
    model.snapshots ? ["snapshots", String(model.snapshots)] : null,
    ["device", model.device],
  ].filter(Boolean);
  const pair = ([name, value, role]) => make("div", { class: role || null }, make("dt", {}, name), make("dd", {}, value));
  return [
    make("h1", {}, model.name, model.version && model.version !== "1" ? make("small", {}, ` version ${model.version}`) : null),
    make("p", { class: "lead" }, [model.trained_on, model.error === null ? "" : errorMeaning(model)].filter(Boolean).join(" ")),
    model.note ? make("p", { class: "note" }, model.note) : null,
    make("dl", { class: "facts" }, facts.map(pair)),
  ].filter(Boolean);
}

// The command of the training, as the receipt tells it.
export function command(receipt) {
  const plain = change => (/^[^ "'[\]{}*]+$/.test(change) ? change : `'${change}'`);
  const own = change => !/^data\.(train|test)=0$/.test(change); // the folder of the data decided these
  const given = (receipt.changes || []).filter(own).map(change => ` --set ${plain(change)}`).join("");
  const seed = receipt.seed > 0 ? ` --seed ${receipt.seed}` : "";
  return `lamo train ${receipt.benchmark} --model ${receipt.model} --preset ${receipt.preset}${seed}${given}`;
}

// Text to copy.
function copyable(words) {
  const copy = button("Copy", async () => {
    await navigator.clipboard.writeText(words);
    copy.textContent = "Copied";
    setTimeout(() => (copy.textContent = "Copy"), 1500);
  }, { class: "copy" });
  return make("div", { class: "command" }, make("pre", { tabindex: 0 }, words), navigator.clipboard ? copy : null);
}

function receiptTable(receipt) {
  const { evaluation = {}, costs = {}, machine = {}, hashes = {} } = receipt, rows = [];
  const add = (name, value) => value !== undefined && value !== null && rows.push([name, String(value)]);
  for (const output of evaluation.outputs || []) {
    const unit = unitText(output.unit);
    add(`${output.name}, relative L2`, short(output.relative_l2));
    add(`${output.name}, mean absolute error`, Number.isFinite(output.mae) ? short(output.mae) + unit : null);
    add(`${output.name}, largest error`, Number.isFinite(output.max) ? short(output.max) + unit : null);
  }
  const quantiles = (evaluation.distribution || {}).quantiles;
  if (quantiles && quantiles.length === 7) add("best, median and worst sample", [0, 3, 6].map(at => short(quantiles[at])).join(", "));
  add("optimiser steps", costs.steps && whole(costs.steps));
  add("training", costs.training_seconds && `${whole(Math.round(costs.training_seconds))} s`);
  add("evaluated on", [machine.device, machine.gpu, machine.precision, machine.system].filter(Boolean).join(", ") || null);
  add("lamo", receipt.lamo);
  add("seed", receipt.seed);
  add("SHA-256 of the weights", hashes.weights);
  add("SHA-256 of the test samples", hashes.test);
  return make("table", {}, make("tbody", {}, rows.map(([name, value]) => make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, value)))));
}

// What unfolds below the model.
export function details(model) {
  const { receipt, name } = model, parts = [];
  if (receipt) {
    const all = make("details", {}, make("summary", {}, "All of it, as JSON"), make("pre", { tabindex: 0 }, JSON.stringify(receipt, null, 1)));
    parts.push(make("details", { id: "receipt" }, make("summary", {}, "Receipt"), receiptTable(receipt), all));
    parts.push(make("details", { id: "repeat" }, make("summary", {}, "Train it again"), copyable(command(receipt))));
  }
  const kind = model.grid.kind === "cloud" || model.inputs.length !== 1 ? "npz" : "npy", base = location.origin + location.pathname;
  const route = `${base}v1/models/${encodeURIComponent(model.id || name)}/predict`;
  const curl = `curl --data-binary @input.${kind} -H 'Content-Type: application/x-${kind}' \\\n  ${route} -o output.${kind}`;
  parts.push(make("details", { id: "call" }, make("summary", {}, "Call it from a program"),
    model.resolutions && model.resolutions.length ? make("p", { class: "keys" }, String(model.resolutions)) : null, copyable(curl)));
  return parts;
}
