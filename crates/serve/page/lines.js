// Fields on a line, as curves over the points.

import { make, text, unitText } from "./dom.js";

const [WIDTH, HEIGHT] = [420, 240], PLOT = { left: 52, right: 410, top: 8, bottom: 214 };
const SPACE = "http://www.w3.org/2000/svg";

function draw(tag, attributes, words = null) {
  const element = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (words !== null) element.textContent = words;
  return element;
}

// Round numbers between two ends.
function ticks(least, most) {
  const rough = (most - least) / 4, unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(factor => factor * unit).find(size => size >= rough) || unit, found = [];
  for (let at = Math.ceil(least / step); at * step <= most && found.length < 12; at++) found.push(at * step);
  return found;
}

export class LineLayout {
  constructor(points, positions) {
    const axis = positions && positions.length === points ? positions : null;
    Object.assign(this, { count: points, axis, aspect: WIDTH / HEIGHT, hint: "Arrow keys read the values of the points." });
  }

  // The point as a share of the width of the plot.
  share(point) {
    const { axis, count } = this;
    if (!axis) return count > 1 ? point / (count - 1) : 0.5;
    return (axis[point] - axis[0]) / (axis[count - 1] - axis[0] || 1);
  }

  place(point) {
    return [(PLOT.left + this.share(point) * (PLOT.right - PLOT.left)) / WIDTH, 0.5];
  }

  nearest([u]) {
    const wanted = (u * WIDTH - PLOT.left) / (PLOT.right - PLOT.left);
    if (!(wanted >= -0.02 && wanted <= 1.02)) return -1;
    let found = 0;
    for (let point = 1; point < this.count; point++) {
      if (Math.abs(this.share(point) - wanted) < Math.abs(this.share(found) - wanted)) found = point;
    }
    return found;
  }

  where(point) {
    return `point ${point}${this.axis ? `, x ${text(this.axis[point])}` : ""}`;
  }

  moved(point, key) {
    const step = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[key];
    return step ? Math.min(this.count - 1, Math.max(0, point + step)) : null;
  }
}

// A plot of curves that belong together.
export class LinePanel {
  constructor(title, label) {
    this.plot = draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label });
    this.ring = make("i", { class: "upright", hidden: true });
    this.view = make("div", { class: "view plot" }, this.plot, this.ring);
    this.caption = make("figcaption", {}, make("strong", {}, title));
    this.element = make("figure", { class: "map" }, this.caption, this.view);
  }

  // Draws curves `{ label, values }` between two ends of the values.
  curves(layout, list, [least, most], unit) {
    const room = most > least ? 0 : Math.abs(most) || 1, [low, high] = [least - room, most + room];
    const x = point => PLOT.left + layout.share(point) * (PLOT.right - PLOT.left);
    const y = value => PLOT.bottom - (value - low) / (high - low) * (PLOT.bottom - PLOT.top);
    const parts = ticks(low, high).flatMap(value => [
      draw("line", { class: "grid", x1: PLOT.left, x2: PLOT.right, y1: y(value), y2: y(value) }),
      draw("text", { x: PLOT.left - 6, y: y(value) + 4, "text-anchor": "end" }, text(value)),
    ]);
    const ends = layout.axis ? [layout.axis[0], layout.axis[layout.count - 1]] : [0, layout.count - 1];
    parts.push(draw("text", { x: PLOT.left, y: HEIGHT - 8 }, text(ends[0])));
    parts.push(draw("text", { x: PLOT.right, y: HEIGHT - 8, "text-anchor": "end" }, text(ends[1])));
    parts.push(draw("text", { x: (PLOT.left + PLOT.right) / 2, y: HEIGHT - 8, "text-anchor": "middle" }, layout.axis ? "x" : "point"));
    list.forEach(({ values }, index) => {
      const corner = (value, point) => (Number.isFinite(value) ? `${x(point).toFixed(1)},${y(value).toFixed(1)}` : "");
      const corners = Array.from(values, corner).filter(Boolean);
      parts.push(draw("polyline", { class: `line k${index}`, points: corners.join(" ") }));
    });
    this.plot.replaceChildren(...parts);
    const keys = list.length > 1 ? list.map(({ label }, index) => make("span", { class: `key k${index}` }, label)) : [];
    this.caption.replaceChildren(this.caption.firstChild, ...keys, make("span", {}, unitText(unit).trim()));
  }

  mark(place) {
    this.ring.hidden = !place;
    if (place) this.ring.style.left = `${100 * place[0]}%`;
  }

  share(event) {
    const box = this.plot.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  }
}
