// Darcy flow: draw the permeability, and the predicted pressure follows, with the solver's pressure and the difference beside it.

import * as api from "./api.js";
import { button, latest, make, save, settled, text } from "./dom.js";
import { Panel, Scale, difference, drawPlane, relativeL2 } from "./maps.js";
import { Drawing, channels, discs, randomMedium } from "./media.js";
import { readNpy, readNpz, words, writeNpy } from "./npy.js";

const PHASES = [3, 12];
const COLOURS = [[70, 80, 107], [222, 203, 150]]; // slate and sand: as far apart in lightness as in hue
const FINE = 421; // cells along a side of the training samples, of which the model sees every fifth
const PAUSE = 220; // milliseconds after the last stroke until the solver is asked

// Whether a model takes a permeability that can be drawn.
export function isDrawable(card) {
  const { grid, inputs, outputs } = card;
  const still = [inputs, outputs].flat().every(field => !field.shape || field.shape.length === 2);
  const square = grid.kind === "plane" && grid.rows === grid.columns && grid.rows > 3;
  const scalar = inputs.length === 1 && outputs.length === 1 && inputs[0].channels === 1 && outputs[0].channels === 1;
  return square && scalar && still && !card.snapshots && (card.solvable || card.problem === "darcy" || card.benchmark === "darcy");
}

export class Darcy {
  constructor(card, say) {
    const side = card.grid.rows, stride = (FINE - 1) % (side - 1) === 0 ? (FINE - 1) / (side - 1) : 1;
    Object.assign(this, { card, say, side, stride, version: 0, seed: 0, phase: 1, radius: 0.05, cursor: [0.5, 0.5], pen: null });
    this.drawing = new Drawing(stride > 1 ? FINE : side, PHASES);
    this.askModel = latest(() => this.predict());
    this.askSolver = settled(PAUSE, latest(() => this.solve()));
    this.announce = settled(700, () => this.tell());
    this.build();
    this.listen();
    this.start();
  }

  build() {
    const { card } = this, [input] = card.inputs, [output] = card.outputs;
    this.ink = new Panel(input.name, { drawing: true, bar: false });
    this.ink.view.append(this.brush = make("i", { class: "brush", hidden: true }));
    Object.entries({
      tabindex: 0, role: "application", "aria-roledescription": "drawing area", "aria-label": `Draw the ${input.name}`,
      "aria-describedby": "drawing-keys",
    }).forEach(([name, value]) => this.ink.view.setAttribute(name, value));
    this.ink.view.classList.add("paper");
    this.maps = {
      prediction: new Panel("Prediction", { label: `Predicted ${output.name}, a map of colours` }),
      truth: card.solvable ? new Panel("Solver", { label: `${output.name} by the solver, a map of colours` }) : null,
      error: card.solvable ? new Panel("Difference", { label: "Prediction minus solver, a map of colours" }) : null,
    };
    this.error = make("output", { class: "headline", id: "error", "aria-live": "off" }, "\u2013");
    this.meaning = make("p", { class: "meaning" });
    this.times = [make("dd", { id: "prediction-time" }, "\u2013"), make("dd", { id: "solver-time" }, "\u2013")];
    this.readout = make("p", { class: "readout", "aria-live": "off" });
    this.hint = "Point at a map to read its values.";
    this.readout.textContent = this.hint;
    const { prediction, truth, error } = this.maps, panel = (map, area) => map && make("div", { class: area }, map.element);
    this.element = make("div", { class: "darcy" },
      make("div", { class: "draw" }, this.ink.element, this.tools()),
      make("div", { class: "results" }, this.numbers(), panel(prediction, "prediction"), panel(truth, "truth"), panel(error, "error"),
        this.readout, this.files()));
  }

  tools() {
    const swatch = index => make("label", { class: "phase" },
      make("input", { type: "radio", name: "phase", value: index, checked: index === this.phase, onchange: () => (this.phase = index) }),
      make("i", { class: `swatch phase${index}` }), `${PHASES[index]} ${["tight", "permeable"][index]}`);
    const size = make("input", { type: "range", id: "brush", min: 1, max: 15, value: 100 * this.radius, oninput: () => this.resize(size.value / 100) });
    this.size = size;
    const fill = rule => () => this.change(() => (this.drawing.values = rule(this.drawing.cells, PHASES, ++this.seed)));
    const clear = () => this.change(() => this.drawing.values.fill(PHASES[0]));
    const undo = () => {
      this.drawing.undo();
      this.changed();
    };
    return make("div", { class: "tools" },
      make("fieldset", { class: "row" }, make("legend", { class: "unseen" }, "Phase to paint"), swatch(0), swatch(1)),
      make("label", { class: "row brush-size" }, make("span", {}, "Brush"), size),
      make("div", { class: "row", role: "group", "aria-label": "Start from" },
        button("Random", fill(randomMedium), { title: "A new sample of the training distribution" }), button("Channels", fill(channels)),
        button("Discs", fill(discs)), button("Clear", clear), button("Undo", undo, { title: "Ctrl Z" })));
  }

  files() {
    const file = make("input", { type: "file", id: "permeability-file", accept: ".npy,.npz", class: "hidden-file", onchange: () => this.open(file) });
    const download = (label, what) => button(label, () => this.download(what), { "data-save": what });
    return make("div", { class: "files" },
      make("div", { class: "row" }, make("label", { class: "button" }, file, "Open npy"), download("Save drawing", "drawing"),
        download("Save prediction", "prediction")),
      make("p", { class: "keys", id: "drawing-keys" }, "Draw with mouse or finger. Keys: arrows move the brush, Shift makes them faster, " +
        "Space paints, X changes the phase, [ and ] the brush."));
  }

  numbers() {
    const pair = (name, value) => make("div", {}, make("dt", {}, name), value);
    return make("div", { class: "numbers" },
      this.card.solvable ? make("div", {}, make("label", { for: "error" }, "relative L2 error"), this.error, this.meaning) : null,
      make("dl", { class: "times" }, pair("prediction", this.times[0]), this.card.solvable ? pair("solver", this.times[1]) : null));
  }

  listen() {
    const { view } = this.ink;
    view.addEventListener("pointerdown", event => {
      if (event.button !== 0) return;
      view.setPointerCapture(event.pointerId);
      this.drawing.keep();
      this.pen = this.ink.share(event);
      this.paint(this.pen, this.pen);
    });
    view.addEventListener("pointermove", event => {
      this.keyed = false;
      const at = this.ink.share(event);
      this.aim(at);
      if (!this.pen) return;
      this.paint(this.pen, at);
      this.pen = at;
    });
    for (const end of ["pointerup", "pointercancel"]) {
      view.addEventListener(end, event => {
        this.pen = null;
        if (event.pointerType === "touch") this.leave();
      });
    }
    view.addEventListener("pointerleave", () => this.pen || this.keyed || this.leave());
    view.addEventListener("focus", () => view.matches(":focus-visible") && this.aim(this.cursor));
    view.addEventListener("blur", () => this.leave());
    view.addEventListener("keydown", event => this.key(event));
    view.addEventListener("keyup", event => event.key === " " && (this.held = false));
    for (const map of Object.values(this.maps)) {
      if (!map) continue;
      map.view.addEventListener("pointermove", event => this.read(map.share(event)));
      map.view.addEventListener("pointerdown", event => this.read(map.share(event)));
      map.view.addEventListener("pointerleave", () => this.leave());
    }
  }

  key(event) {
    if (event.key === "z" && (event.ctrlKey || event.metaKey)) {
      this.drawing.undo();
      this.changed();
      return event.preventDefault();
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    const before = this.cursor, pace = (event.shiftKey ? 8 : 1) / this.side;
    if (step) this.cursor = before.map((share, axis) => Math.min(1 - 0.5 / this.side, Math.max(0.5 / this.side, share + pace * step[axis])));
    else if (event.key === " ") this.held = this.held || void this.drawing.keep() || true;
    else if (event.key === "x" || event.key === "X") this.element.querySelectorAll("input[name=phase]")[1 - this.phase].click();
    else if (event.key === "[" || event.key === "]") this.resize(this.radius + (event.key === "]" ? 0.01 : -0.01));
    else return;
    event.preventDefault();
    this.keyed = true;
    if (this.held) this.paint(before, this.cursor);
    this.readout.setAttribute("aria-live", "polite");
    this.aim(this.cursor);
  }

  resize(radius) {
    this.radius = Math.min(0.15, Math.max(0.01, radius));
    this.size.value = Math.round(100 * this.radius);
    if (!this.brush.hidden) this.aim(this.cursor);
  }

  // Shows the brush and the values below it.
  aim([u, v]) {
    this.cursor = [u, v];
    Object.assign(this.brush.style, { left: `${100 * u}%`, top: `${100 * v}%`, width: `${200 * this.radius}%` });
    this.brush.hidden = false;
    this.read([u, v]);
  }

  leave() {
    this.brush.hidden = true;
    this.reading = null;
    this.held = this.keyed = false;
    for (const map of Object.values(this.maps)) if (map) map.mark(null);
    this.readout.setAttribute("aria-live", "off");
    this.readout.textContent = this.hint;
  }

  // Reads the values at a place off all maps.
  read([u, v]) {
    if (!(u >= 0 && u < 1 && v >= 0 && v < 1)) return this.leave();
    this.reading = [u, v];
    const { side, drawing } = this, [column, row] = [Math.floor(u * side), Math.floor(v * side)], at = row * side + column;
    const own = drawing.values[Math.floor(v * drawing.cells) * drawing.cells + Math.floor(u * drawing.cells)];
    const rows = [`row ${row}, column ${column}`, `${this.card.inputs[0].name} ${text(own)}`];
    const { prediction, truth } = this.shown || {};
    if (prediction) rows.push(`prediction ${text(prediction.values[at])}`);
    if (truth) rows.push(`solver ${text(truth.values[at])}`, `difference ${text(prediction.values[at] - truth.values[at])}`);
    this.readout.textContent = rows.join(" \u00b7 ");
    for (const map of Object.values(this.maps)) if (map) map.mark([(column + 0.5) / side, (row + 0.5) / side]);
  }

  paint(from, to) {
    this.drawing.stroke(from, to, this.radius, PHASES[this.phase]);
    this.changed();
  }

  change(act) {
    this.drawing.keep();
    act();
    this.changed();
  }

  changed() {
    this.version++;
    this.show();
    this.element.classList.add("stale");
    this.askModel();
    if (this.card.solvable) this.askSolver();
  }

  // Draws the permeability.
  show() {
    const { cells, values } = this.drawing, { canvas } = this.ink;
    if (canvas.width !== cells) Object.assign(canvas, { width: cells, height: cells });
    const context = canvas.getContext("2d"), image = context.createImageData(cells, cells);
    for (let at = 0; at < values.length; at++) {
      const share = Math.min(1, Math.max(0, (values[at] - PHASES[0]) / (PHASES[1] - PHASES[0])));
      for (let channel = 0; channel < 3; channel++) {
        image.data[4 * at + channel] = COLOURS[0][channel] + share * (COLOURS[1][channel] - COLOURS[0][channel]);
      }
      image.data[4 * at + 3] = 255;
    }
    context.putImageData(image, 0, 0);
  }

  async predict() {
    const version = this.version, { side, stride, drawing } = this;
    try {
      const given = writeNpy({ shape: [side, side], values: drawing.thinned(stride) });
      const answer = await api.predict(this.card.id, given, "npy");
      const array = readNpy(answer.bytes, "the prediction");
      this.prediction = { version, values: array.values, bytes: answer.bytes };
      this.times[0].textContent = milliseconds(answer.computed ?? answer.milliseconds);
      this.say(null);
      this.draw();
    } catch (failure) {
      this.say(failure);
    }
  }

  // Asks the solver for the pressure of the drawing; a solver that works on the grid of the model is sent what the model sees.
  async solve() {
    const version = this.version, { drawing, side, stride } = this;
    const cells = this.coarse ? side : drawing.cells, values = this.coarse ? drawing.thinned(stride) : drawing.values;
    try {
      const answer = await api.solve(this.card.id, writeNpy({ shape: [cells, cells], values }));
      this.truth = { version, values: answer.array.values };
      this.times[1].textContent = milliseconds(answer.computed ?? answer.milliseconds);
      this.draw();
    } catch (failure) {
      if (failure.status !== 400 || this.coarse || stride === 1) return this.say(failure);
      this.coarse = true;
      await this.solve();
    }
  }

  // Draws the pressures with one scale. The solver's map and the error belong to one drawing; older ones are pale.
  draw() {
    const { prediction, maps, side } = this, truth = this.truth, unit = this.card.outputs[0].unit;
    if (!prediction) return;
    const fresh = Boolean(truth) && truth.version === prediction.version;
    this.shown = { prediction, truth: fresh ? truth : null };
    if (this.reading) this.read(this.reading);
    const scale = truth ? Scale.of(prediction.values, truth.values) : Scale.of(prediction.values);
    const put = (map, values, colours) => {
      drawPlane(map.canvas, values, [side, side], colours);
      map.legend(colours, unit);
    };
    put(maps.prediction, prediction.values, scale);
    this.element.classList.toggle("stale", !fresh);
    if (!truth || !maps.truth) return;
    put(maps.truth, truth.values, scale);
    if (!fresh) return;
    const error = difference(prediction.values, truth.values);
    put(maps.error, error, Scale.signed(error));
    const relative = relativeL2(prediction.values, truth.values), usual = this.card.error;
    this.error.textContent = text(Number(relative.toPrecision(3)));
    this.error.dataset.value = String(relative);
    const against = usual ? ` Test samples: ${text(Number(usual.toPrecision(2)))} on average.` : "";
    this.meaning.textContent = `${text(Number((100 * relative).toPrecision(2)))} % of the pressure\u2019s size.${against}`;
    this.announce();
  }

  // Tells screen readers the error, once it rests.
  tell() {
    document.getElementById("live").textContent = `Relative L2 error ${this.error.textContent}. Prediction ${this.times[0].textContent}.`;
  }

  async open(input) {
    const [file] = input.files;
    if (!file) return;
    try {
      const bytes = await file.arrayBuffer(), arrays = file.name.endsWith(".npz") ? await readNpz(bytes, file.name) : null;
      const { shape, values } = arrays ? arrays.get(this.card.inputs[0].name) || [...arrays.values()][0] || {} : readNpy(bytes, file.name);
      const { cells } = this.drawing, { side } = this, plane = (shape || []).filter(extent => extent !== 1);
      if (![cells, side].some(extent => plane.length === 2 && plane.every(own => own === extent))) {
        const sizes = cells === side ? `${side} x ${side}` : `${side} x ${side} or ${cells} x ${cells}`;
        throw new Error(`${file.name}: expected ${sizes} values, found ${shape ? words(shape) : "no array"}`);
      }
      this.change(() => this.drawing.take(values, this.stride));
      this.say(null);
    } catch (failure) {
      this.say(failure);
    }
    input.value = "";
  }

  download(what) {
    const { cells, values } = this.drawing, name = this.card.name;
    if (what === "drawing") return save(writeNpy({ shape: [cells, cells], values }), `${name}-${this.card.inputs[0].name}.npy`);
    if (this.prediction) save(this.prediction.bytes, `${name}-${this.card.outputs[0].name}.npy`);
  }

  start() {
    this.drawing.values = randomMedium(this.drawing.cells, PHASES, this.seed);
    this.changed();
  }
}

const milliseconds = time => (time < 10 ? `${text(Number(time.toPrecision(2)))} ms` : `${Math.round(time)} ms`);
