// Fields as colours: perceptually uniform maps that colour-blind readers can tell apart, scales, and panels that show them.

import { make, text, unitText } from "./dom.js";

// Viridis (Smith and van der Walt 2015, public domain), and cool to warm through grey (after Moreland 2009) for signed fields.
const VIRIDIS = [0x440154, 0x482878, 0x3e4a89, 0x31688e, 0x26828e, 0x1f9e89, 0x35b779, 0x6dcd59, 0xb4de2c, 0xfde725];
const COOL_WARM = [0x3b4cc0, 0x5d7ce6, 0x82a6fb, 0xaac7fd, 0xdddddd, 0xf5c1a9, 0xf4987a, 0xdd5f4b, 0xb40426];
const MISSING = [255, 0, 255]; // values that are not finite
const SIGNED = 0.2; // a field is signed if its smaller extreme reaches this part of the larger one
const NEAR_ZERO = 0.02; // a scale begins at zero if its smallest value is closer to it than this part of its largest

const parts = colour => [colour >> 16, (colour >> 8) & 255, colour & 255];

// 256 colours of a table, red, green and blue of each side by side; the last three bytes are those of missing values.
function palette(table) {
  const colours = new Uint8ClampedArray(3 * 257), last = table.length - 1;
  for (let level = 0; level < 256; level++) {
    const position = level / 255 * last, first = Math.min(Math.floor(position), last - 1);
    const [from, to] = [parts(table[first]), parts(table[first + 1])];
    for (let channel = 0; channel < 3; channel++) {
      colours[3 * level + channel] = Math.round(from[channel] + (position - first) * (to[channel] - from[channel]));
    }
  }
  colours.set(MISSING, 3 * 256);
  return colours;
}
const PALETTES = new Map([VIRIDIS, COOL_WARM].map(table => [table, palette(table)]));

// The smallest and the largest finite value.
export function extremes(arrays) {
  let least = Infinity, most = -Infinity;
  for (const values of arrays) {
    for (let at = 0; at < values.length; at++) {
      const value = values[at];
      if (value < least && value !== -Infinity) least = value;
      if (value > most && value !== Infinity) most = value;
    }
  }
  return least <= most ? [least, most] : [0, 0];
}

// Colours of the values from `least` to `most`.
export class Scale {
  constructor(least, most, table) {
    Object.assign(this, { least, most, table, colours: PALETTES.get(table) });
  }

  // One scale for all values of some arrays; symmetric around zero for a signed field.
  static of(...arrays) {
    const [least, most] = extremes(arrays), larger = Math.max(most, -least);
    if (Math.min(most, -least) > SIGNED * larger) return new Scale(-larger, larger, COOL_WARM);
    return new Scale(Math.abs(least) < NEAR_ZERO * most ? 0 : least, most, VIRIDIS);
  }

  // Symmetric around zero, for errors.
  static signed(...arrays) {
    const [least, most] = extremes(arrays), larger = Math.max(most, -least);
    return new Scale(-larger, larger, COOL_WARM);
  }

  // Where the colour of a value begins in `colours`.
  level(value) {
    if (!Number.isFinite(value)) return 3 * 256;
    const width = this.most - this.least;
    if (!(width > 0)) return 3 * 128;
    return 3 * Math.round(255 * Math.min(1, Math.max(0, (value - this.least) / width)));
  }

  gradient() {
    const stops = this.table.map(colour => `rgb(${parts(colour).join(" ")})`);
    return `linear-gradient(90deg, ${stops.join(", ")})`;
  }
}

// Draws a plane of values into a canvas with one pixel for each of them, the first row above.
export function drawPlane(canvas, values, [rows, columns], scale) {
  if (canvas.width !== columns || canvas.height !== rows) Object.assign(canvas, { width: columns, height: rows });
  const context = canvas.getContext("2d"), image = context.createImageData(columns, rows), { data } = image, { colours } = scale;
  for (let at = 0; at < rows * columns; at++) {
    const level = scale.level(values[at]);
    data[4 * at] = colours[level];
    data[4 * at + 1] = colours[level + 1];
    data[4 * at + 2] = colours[level + 2];
    data[4 * at + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}

// A map with its name, its colours and a mark for the point that is read.
export class Panel {
  constructor(title, { label = title, drawing = false, bar = true } = {}) {
    this.canvas = make("canvas", { role: drawing ? null : "img", "aria-label": drawing ? null : label, width: 1, height: 1 });
    this.ring = make("i", { class: "ring", hidden: true });
    this.view = make("div", { class: "view" }, this.canvas, this.ring);
    this.colours = make("div", { class: "colours" });
    this.ends = [make("span"), make("span"), make("span")];
    this.title = make("strong", {}, title);
    this.note = make("span");
    this.bar = make("div", { class: "bar", "aria-hidden": "true" }, this.colours, make("div", { class: "ends" }, this.ends));
    this.element = make("figure", { class: "map" }, make("figcaption", {}, this.title, " ", this.note), this.view, bar ? this.bar : null);
  }

  // Shows the ends of a scale; the unit stands in the middle.
  legend(scale, unit) {
    this.colours.style.background = scale.gradient();
    [text(scale.least), unitText(unit).trim(), text(scale.most)].forEach((word, at) => (this.ends[at].textContent = word));
  }

  // Marks a place, as shares of the width and the height; null removes the mark.
  mark(place) {
    const shown = place && place.every(share => share >= 0 && share <= 1);
    this.ring.hidden = !shown;
    if (!shown) return;
    this.ring.style.left = `${100 * place[0]}%`;
    this.ring.style.top = `${100 * place[1]}%`;
  }

  // Where a pointer is, as shares of the width and the height.
  share(event) {
    const box = this.canvas.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  }
}

// ‖prediction − truth‖ / ‖truth‖.
export function relativeL2(prediction, truth) {
  let difference = 0, size = 0;
  for (let at = 0; at < truth.length; at++) {
    difference += (prediction[at] - truth[at]) ** 2;
    size += truth[at] ** 2;
  }
  return size > 0 ? Math.sqrt(difference / size) : NaN;
}

// prediction − truth.
export const difference = (prediction, truth) => Float32Array.from(prediction, (value, at) => value - truth[at]);
