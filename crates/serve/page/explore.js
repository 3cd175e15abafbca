// Any model: choose a test sample or open a file, and see inputs, prediction, truth and error on their points.

import * as api from "./api.js";
import { button, latest, make, save, text, unitText } from "./dom.js";
import { Field, gridShape, isEven, planeTriangles } from "./fields.js";
import { PlaneLayout, VolumeLayout } from "./layouts.js";
import { LineLayout, LinePanel } from "./lines.js";
import { Panel, Scale, difference, extremes, relativeL2 } from "./maps.js";
import { MeshLayout } from "./mesh.js";
import { Player } from "./player.js";
import { asked, opened, predicted } from "./samples.js";
import { writeVtu } from "./vtu.js";

const option = (label, value) => make("option", { value }, label);

// How the points of a sample lie in a picture.
function layoutOf(card, shape, positions, triangles) {
  const axes = positions ? positions.shape[positions.shape.length - 1] : 0;
  if (card.grid.kind === "volume") return new VolumeLayout(shape);
  if (card.grid.kind === "line") return new LineLayout(shape[0], positions && axes === 1 ? positions.values : null);
  if (card.grid.kind === "plane") {
    if (!positions || axes < 2 || isEven(positions, shape)) return new PlaneLayout(shape);
    return new MeshLayout(positions.values, axes, planeTriangles(shape));
  }
  if (!positions || axes < 2) return new LineLayout(shape[0], positions ? positions.values : null);
  return new MeshLayout(positions.values, axes, triangles ? triangles.values : null);
}

export class Explorer {
  constructor(card, say) {
    Object.assign(this, { card, say, frame: 0, point: -1, panels: {} });
    this.ask = latest(job => job());
    this.build();
    new ResizeObserver(() => this.layout && this.layout.axes && this.paint()).observe(this.maps);
  }

  begin() {
    return this.card.samples > 0 ? this.choose(0) : undefined;
  }

  build() {
    const { samples } = this.card, opens = { type: "file", id: "file", accept: ".npy,.npz,.vtu", class: "hidden-file" };
    const file = make("input", { ...opens, onchange: () => this.open(file) }), counts = { type: "number", id: "sample", min: 1, max: samples, value: 1 };
    this.number = make("input", { ...counts, onchange: () => this.choose(this.number.value - 1) });
    const step = by => () => this.choose(Number(this.number.value) - 1 + by);
    const chooser = samples > 0 ? make("div", { class: "row" }, make("label", { for: "sample" }, "Test sample"),
      button("\u2039", step(-1), { "aria-label": "Previous sample" }), this.number, button("\u203a", step(1), { "aria-label": "Next sample" }),
      make("span", { class: "soft" }, `of ${samples}`)) : null;
    const select = (label, id, onchange) => {
      const field = make("select", { id, onchange });
      return [make("label", { class: "row", hidden: true }, make("span", {}, label), field), field];
    };
    [this.inputRow, this.input] = select("Input", "input", () => this.paint());
    [this.outputRow, this.output] = select("Output", "output", () => this.paint());
    this.saves = make("div", { class: "row", role: "group", "aria-label": "Save the prediction", hidden: true }, make("span", {}, "Save as"),
      ["npy", "npz", "vtu"].map(kind => button(kind, () => this.download(kind), { "data-kind": kind })));
    this.player = new Player(frame => {
      this.frame = frame;
      this.paint();
    });
    this.maps = make("div", { class: "maps" });
    this.readout = make("p", { class: "readout", "aria-live": "polite" });
    this.numbers = make("dl", { class: "times" });
    this.others = make("p", { class: "keys" });
    this.keys = make("p", { class: "keys", id: "map-keys" });
    this.element = make("div", { class: "explore" },
      make("div", { class: "controls" }, chooser, make("label", { class: "button" }, file, "Open a file"), this.inputRow, this.outputRow, this.saves),
      this.player.element, this.maps, this.readout, this.numbers, this.others, this.keys);
    if (!samples) this.readout.textContent = this.wanted();
  }

  // What a file for this model holds.
  wanted() {
    const shape = field => (field.shape ? `, ${field.shape.join(" \u00d7 ")}` : "");
    const fields = this.card.inputs.map(field => `${field.name}${unitText(field.unit)}${shape(field)}`);
    if (this.card.grid.kind === "cloud" || !fields.length) fields.unshift("positions");
    return `No test samples are at hand. Open an ${this.card.grid.kind === "cloud" ? "npy, npz or vtu" : "npy or npz"} file with ${fields.join("; ")}.`;
  }

  choose(index) {
    const { samples, name } = this.card, number = Math.min(samples, Math.max(1, Math.round(index + 1) || 1));
    this.number.value = number;
    return this.run(() => asked(this.card, number - 1), `${name}-${number}`);
  }

  async open(input) {
    const [file] = input.files;
    if (file) await this.run(async () => opened(this.card, file.name, new Uint8Array(await file.arrayBuffer())), file.name.replace(/\.[^.]*$/, ""));
    input.value = "";
  }

  // Gets a sample, predicts it and shows it.
  run(get, name) {
    return this.ask(async () => {
      this.element.setAttribute("aria-busy", "true");
      try {
        const sample = await get(), result = await predicted(this.card, sample);
        Object.assign(this, { sample, result, name });
        this.say(null);
        this.arrange();
      } catch (failure) {
        this.say(failure);
      }
      this.element.removeAttribute("aria-busy");
    });
  }

  // Panels and choices for a new sample.
  arrange() {
    const { card, sample, result } = this, { positions, triangles } = { ...sample, ...result.geometry };
    const shape = gridShape(card.grid, positions), read = kinds => kinds.map(({ kind, array }) => Field.of(kind, array, shape)).filter(Boolean);
    this.fields = { inputs: read(sample.inputs), prediction: read(result.outputs), truth: read(result.truth || sample.truth) };
    if (!this.fields.prediction.length) throw new Error("The prediction does not lie on the points of the input.");
    const before = this.layout;
    this.layout = layoutOf(card, shape, positions, triangles);
    if (before && before.solid && this.layout.solid) {
      const { azimuth, elevation, zoom } = before; // the next body is seen from the same side
      Object.assign(this.layout, { azimuth, elevation, zoom });
    }
    this.list(this.inputRow, this.input, this.fields.inputs);
    this.list(this.outputRow, this.output, this.fields.prediction);
    this.frame = this.player.length(Math.max(...this.fields.prediction.map(field => field.frames)), card.snapshots ? "snapshot" : "sample");
    this.point = -1;
    this.panelsFor();
    this.saves.hidden = false;
    this.saves.querySelector("[data-kind=npy]").hidden = card.outputs.length > 1; // one npy file holds one array
    this.saves.querySelector("[data-kind=vtu]").hidden = !(this.layout instanceof MeshLayout);
    this.tell();
    this.paint();
  }

  // Fills a list with what can be shown, and keeps the choice where it is still there.
  list(row, select, fields) {
    const before = select.value, choices = fields.flatMap(field => field.choices());
    select.replaceChildren(...choices.map(({ label }, index) => option(label, index)));
    select.choices = choices;
    if (before && choices[before]) select.value = before;
    row.hidden = choices.length < 2;
  }

  panelsFor() {
    const line = this.layout instanceof LineLayout, truth = this.fields.truth.length > 0, inputs = this.fields.inputs.length > 0;
    const panel = (title, shown) => shown && (line ? new LinePanel(title, `${title}, curves`) : new Panel(title, { label: `${title}, a map of colours` }));
    this.panels = {
      input: panel("Input", inputs), prediction: panel(line && truth ? "Output" : "Prediction", true),
      truth: panel("Truth", truth && !line), error: panel("Difference", truth),
    };
    const list = Object.values(this.panels).filter(Boolean);
    this.maps.replaceChildren(...list.map(one => one.element));
    this.maps.style.setProperty("--columns", String(list.length));
    this.maps.classList.toggle("wide", this.layout.aspect > 1.5);
    this.maps.classList.toggle("crisp", Boolean(this.layout.crisp));
    this.keys.textContent = this.layout.hint;
    this.readout.textContent = "Point at a map to read its values.";
    list.forEach(one => this.listen(one));
  }

  listen(panel) {
    const { view } = panel, { layout } = this;
    let from = null;
    const read = event => this.read(layout.nearest(panel.share(event)));
    view.tabIndex = 0;
    view.setAttribute("role", "application");
    view.setAttribute("aria-label", panel.element.querySelector("strong").textContent);
    view.setAttribute("aria-describedby", "map-keys");
    view.classList.toggle("turns", Boolean(layout.solid));
    view.classList.toggle("moves", Boolean(layout.drag));
    view.addEventListener("pointerdown", event => {
      if (layout.through && layout.nearest(panel.share(event)) >= 0) this.cut(layout.nearest(panel.share(event)));
      if (!layout.drag || (event.pointerType === "touch" && !layout.solid)) return read(event);
      view.setPointerCapture(event.pointerId);
      from = panel.share(event);
    });
    view.addEventListener("pointermove", event => {
      if (!from) return read(event);
      const to = panel.share(event);
      layout.drag(to[0] - from[0], to[1] - from[1]);
      from = to;
      this.soon();
    });
    for (const end of ["pointerup", "pointercancel"]) view.addEventListener(end, () => (from = null));
    view.addEventListener("pointerleave", () => document.activeElement === view || this.read(-1));
    view.addEventListener("wheel", event => {
      if (!layout.enlarge || !(event.ctrlKey || document.activeElement === view)) return; // the page scrolls unless the map has the focus
      event.preventDefault();
      layout.enlarge(Math.exp(-0.002 * event.deltaY), panel.share(event));
      this.soon();
    }, { passive: false });
    view.addEventListener("keydown", event => this.key(event));
    view.addEventListener("blur", () => this.read(-1));
  }

  key(event) {
    const { layout } = this;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (layout.key && layout.key(event)) {
      event.preventDefault();
      return this.soon();
    }
    const next = layout.moved(this.point < 0 ? Math.floor(this.fields.prediction[0].points / 2) : this.point, event.key);
    if (next === null) return;
    event.preventDefault();
    if (layout.through) this.paint();
    this.read(next);
  }

  cut(point) {
    this.layout.through(point);
    this.paint();
  }

  soon() {
    this.waiting = this.waiting || requestAnimationFrame(() => {
      this.waiting = 0;
      this.paint();
    });
  }

  // What is shown now: the values of the panels by name.
  shown() {
    const pick = select => select.choices[Number(select.value) || 0] || null, own = pick(this.output), inputChoice = pick(this.input), { frame } = this;
    const truthField = this.fields.truth.find(field => field.name === own.field.name), prediction = own.field.at(frame, own.channel);
    const truth = truthField ? truthField.at(frame, own.channel) : null, input = inputChoice && inputChoice.field.at(frame, inputChoice.channel);
    return { own, inputChoice, input, prediction, truth, error: truth && difference(prediction, truth) };
  }

  // The scales of all frames together, so that time series keep theirs.
  scales({ own, inputChoice }) {
    const all = (choice, field) => Array.from({ length: field.frames }, (_, frame) => field.at(frame, choice.channel));
    const key = `${this.output.value} ${this.input.value}`;
    if (this.kept && this.kept.key === key && this.kept.result === this.result) return this.kept;
    const prediction = all(own, own.field), field = this.fields.truth.find(one => one.name === own.field.name);
    const truth = field ? all(own, field) : [];
    const errors = truth.length === prediction.length ? prediction.map((values, frame) => difference(values, truth[frame])) : [];
    const input = inputChoice ? all(inputChoice, inputChoice.field) : [];
    const ends = { input: extremes(input), output: extremes([...prediction, ...truth]), error: extremes(errors) };
    const scales = { input: Scale.of(...input), output: Scale.of(...prediction, ...truth), error: Scale.signed(...errors) };
    return (this.kept = { key, result: this.result, ...scales, ends });
  }

  paint() {
    if (!this.layout) return;
    const values = this.shown(), scales = this.scales(values), { panels, layout } = this, unit = values.own.field.unit;
    const inputUnit = values.inputChoice && values.inputChoice.field.unit;
    if (layout instanceof LineLayout) {
      const both = [{ label: "prediction", values: values.prediction }, values.truth && { label: "truth", values: values.truth }].filter(Boolean);
      if (panels.input) panels.input.curves(layout, [{ values: values.input }], scales.ends.input, inputUnit);
      panels.prediction.curves(layout, both, scales.ends.output, unit);
      if (panels.error && values.error) panels.error.curves(layout, [{ values: values.error }], scales.ends.error, unit);
    } else {
      for (const name of ["input", "prediction", "truth", "error"]) {
        const panel = panels[name], scale = scales[name === "input" || name === "error" ? name : "output"];
        if (!panel || !values[name]) continue;
        const width = Math.round((panel.view.clientWidth || 320) * Math.min(2, devicePixelRatio || 1));
        panel.view.style.aspectRatio = String(layout.aspect);
        layout.paint(panel.canvas, values[name], scale, width);
        panel.legend(scale, name === "input" ? inputUnit : unit);
        panel.note.textContent = name === "input" ? values.inputChoice.label : name === "error" ? "" : values.own.label;
      }
    }
    if (this.point >= 0) this.read(this.point);
  }

  // Reads the values at a point off all maps; -1 for none.
  read(point) {
    this.point = point;
    for (const panel of Object.values(this.panels)) if (panel) panel.mark(point < 0 ? null : this.layout.place(point));
    if (point < 0) return (this.readout.textContent = "Point at a map to read its values.");
    const values = this.shown(), unit = unitText(values.own.field.unit), parts = [this.layout.where(point)];
    if (values.input) parts.push(`${values.inputChoice.label} ${text(values.input[point])}${unitText(values.inputChoice.field.unit)}`);
    parts.push(`prediction ${text(values.prediction[point])}${unit}`);
    if (values.truth) parts.push(`truth ${text(values.truth[point])}${unit}`, `difference ${text(values.error[point])}${unit}`);
    this.readout.textContent = parts.join(" \u00b7 ");
  }

  // The numbers of the sample.
  tell() {
    const pair = (name, value, id) => make("div", {}, make("dt", {}, name), make("dd", { id }, value));
    const { prediction, truth } = this.fields, { result } = this;
    const errors = prediction.flatMap(field => {
      const real = truth.find(one => one.name === field.name && one.values.length === field.values.length);
      return real ? [[field.name, relativeL2(field.values, real.values)]] : [];
    });
    const time = result.computed ?? result.milliseconds;
    this.numbers.replaceChildren(
      ...errors.map(([name, error], at) => pair(errors.length > 1 ? `${name}, relative L2 error` : "relative L2 error", text(error), at ? null : "error")),
      pair("prediction", `${time < 10 ? text(Number(time.toPrecision(2))) : Math.round(time)} ms`, "prediction-time"));
    const rest = this.sample.inputs.filter(({ kind, array }) => !this.fields.inputs.some(field => field.name === kind.name) && array.values.length <= 12);
    this.others.textContent = rest.map(({ kind, array }) => `${kind.name} ${Array.from(array.values, text).join(", ")}${unitText(kind.unit)}`).join("; ");
    document.getElementById("live").textContent = errors.map(([name, error]) => `${name}, relative L2 error ${text(error)}.`).join(" ");
  }

  async download(kind) {
    const { sample, name, card } = this;
    try {
      const own = kind === "vtu" && sample.kind !== "vtu"; // the server answers a mesh to a mesh alone
      save(own ? this.mesh() : (await api.predict(card.id, sample.bytes, sample.kind, kind)).bytes, `${name}-prediction.${kind}`);
    } catch (failure) {
      this.say(failure);
    }
  }

  // The points with the prediction, and with the truth where it is known, as a mesh file.
  mesh() {
    const { positions, axes, triangles } = this.layout, { prediction, truth } = this.fields;
    const all = (field, name) => Array.from({ length: field.frames }, (_, frame) => {
      const { channels, values, points } = field, size = points * channels;
      return { name: field.frames > 1 ? `${name}_${frame}` : name, channels, values: values.subarray(frame * size, (frame + 1) * size) };
    });
    const arrays = [...prediction.map(field => all(field, `${field.name}_predicted`)), ...truth.map(field => all(field, field.name))];
    return writeVtu(positions, axes, triangles, arrays.flat());
  }
}
