// Reads values off the maps of the report and animates its time series. All that it needs is in the page.
"use strict";
(() => {
  const MISSING = 65535;
  const bytes = text => Uint8Array.from(atob(text), letter => letter.charCodeAt(0)).buffer;

  // The values of an array, and the step to which they are rounded.
  function decoded(array) {
    if (!array) return null;
    if (array.floats !== undefined) return { values: new Float32Array(bytes(array.floats)), step: 0 };
    const codes = new Uint16Array(bytes(array.codes));
    const value = code => (code === MISSING ? NaN : array.least + array.step * code);
    return { values: Float64Array.from(codes, value), step: array.step };
  }

  // What lies behind the maps of a card; decoded when it is first needed.
  const cards = new Map();
  function dataOf(card) {
    if (!cards.has(card)) {
      const data = JSON.parse(card.querySelector('script[type="application/json"]').textContent);
      for (const layout of data.layouts) {
        for (const key of ["shares", "at", "depths"]) layout[key] = decoded(layout[key]);
        if (layout.positions) layout.positions = layout.positions.map(axis => decoded(axis).values);
        layout.count = layout.count || (layout.plane ? layout.plane[0] * layout.plane[1] : layout.points);
        if (layout.kind === "cloud" && layout.positions[0].length < layout.count) layout.count = layout.positions[0].length;
        if (layout.triangles) layout.triangles = new Uint32Array(bytes(layout.triangles));
        if (layout.numbers) layout.numbers = new Uint32Array(bytes(layout.numbers));
        Object.assign(layout, { window: data.window, data });
      }
      Object.assign(data, { first: data.view.slice(), zoom: 1 });
      for (const field of data.fields) {
        for (const set of field.sets) Object.assign(set, decoded(set.values), { layout: data.layouts[set.layout] });
      }
      cards.set(card, data);
    }
    return cards.get(card);
  }

  // Four digits, but none below the step to which the value was rounded.
  function text(value, step) {
    if (!Number.isFinite(value)) return "not a number";
    const unit = step > 0 ? 10 ** Math.floor(Math.log10(step)) : 0;
    const rounded = unit > 0 ? Math.round(value / unit) * unit : value;
    return String(Number(rounded.toPrecision(4))).replace("-", "\u2212");
  }

  // The index in the data set of one of `kept` indices that are spread over `count`.
  const original = (index, kept, count) => (kept < 2 ? 0 : Math.floor(index * (count - 1) / (kept - 1)));

  // The position of a point as shares of the width and the height of its map, both from the upper left corner.
  function place(layout, time, point) {
    if (layout.kind === "line") return [layout.shares.values[point], 0.5];
    if (layout.kind === "grid") {
      const [rows, columns] = layout.plane;
      return [(point % columns + 0.5) / columns, (Math.floor(point / columns) + 0.5) / rows];
    }
    if (layout.kind === "triangles") {
      const { u, v } = Triangles.places(layout, time);
      return [u[point], v[point]];
    }
    const [x, y] = layout.positions.map(axis => axis[(axis.length > layout.count ? time * layout.count : 0) + point]);
    const { least, most } = layout.window, [width, height] = layout.size;
    const extent = [0, 1].map(axis => Math.max(most[axis] - least[axis], 1e-30));
    const scale = Math.min(width / extent[0], height / extent[1]);
    const centred = [x - (least[0] + most[0]) / 2, y - (least[1] + most[1]) / 2];
    return [0.5 + scale * centred[0] / width, 0.5 - scale * centred[1] / height];
  }

  // The point that is drawn at a place; -1 if there is none.
  function nearest(layout, time, [u, v]) {
    if (layout.kind === "grid") {
      const [rows, columns] = layout.plane;
      const inside = u >= 0 && u < 1 && v >= 0 && v < 1;
      return inside ? Math.floor(v * rows) * columns + Math.floor(u * columns) : -1;
    }
    if (layout.kind === "triangles") return Triangles.hit(layout, time, [u, v]);
    let found = -1, best = layout.kind === "line" ? Infinity : 0.03 * 0.03, depth = -Infinity;
    const ratio = layout.size ? layout.size[1] / layout.size[0] : 0;
    for (let point = 0; point < layout.count; point++) {
      const [x, y] = place(layout, time, point);
      const distance = (x - u) ** 2 + (ratio * (y - v)) ** 2;
      const front = layout.depths ? layout.depths.values[point] : 0;
      const covers = layout.depths && distance < 1e-4; // of the discs under the pointer, the front one is seen
      if (covers ? front > depth : depth === -Infinity && distance < best) {
        found = point;
        best = distance;
        if (covers) depth = front;
      }
    }
    return found;
  }

  // Where a point is, in words.
  function location(layout, axes, time, point) {
    const words = [];
    if (layout.kind === "grid" || layout.kind === "mesh") {
      const [rows, columns] = layout.plane;
      words.push(`${axes[0]} ${original(Math.floor(point / columns), rows, layout.shape[0])}`);
      words.push(`${axes[1]} ${original(point % columns, columns, layout.shape[1])}`);
    } else {
      words.push(`point ${layout.numbers ? layout.numbers[point] : original(point, layout.count, layout.points)}`);
    }
    if (layout.at) words.push(`x ${text(layout.at.values[point], 0)}`);
    if (layout.positions) {
      const at = axis => axis[(axis.length > layout.count ? time * layout.count : 0) + point];
      words.push(layout.positions.map((axis, index) => `${"xyz"[index]} ${text(at(axis), 0)}`).join(", "));
    }
    if (layout.depths) words.push(`z ${text(layout.depths.values[point], layout.depths.step)}`);
    return words.join(", ");
  }

  // The layout of the values that a map shows; the points of a deformed body are elsewhere in the prediction.
  const layoutOf = (field, map) => (field.sets[map.dataset.set] || field.sets[0]).layout;
  const valueOf = (set, time, point) => set.values[time * set.layout.count + point];

  // The lines of the tip: the place, the values there, and their difference.
  function lines(field, time, point) {
    const [first, second] = field.sets, unit = (field.unit || "").replace(/[()]/g, "");
    const rows = [[field.times[time], location(first.layout, field.axes || ["row", "column"], time, point)].filter(Boolean).join(", ")];
    for (const set of field.sets) rows.push(`${set.label} ${text(valueOf(set, time, point), set.step)}${unit}`);
    if (second && field.sets.length === 2) {
      const difference = valueOf(second, time, point) - valueOf(first, time, point);
      rows.push(`difference ${text(difference, Math.max(first.step, second.step))}${unit}`);
    }
    return rows;
  }

  const tip = document.createElement("div");
  tip.className = "tip";
  tip.setAttribute("role", "status");
  tip.hidden = true;
  document.body.append(tip);
  let shown = null;

  function hide() {
    tip.hidden = true;
    shown = null;
    document.querySelectorAll(".ring").forEach(ring => ring.remove());
  }

  // The part of a view in which its points lie: all of it, or the plot of a curve.
  function plotOf(view) {
    const curve = view.querySelector("svg");
    return curve ? curve.dataset.plot.split(" ").map(Number) : [0, 0, 1, 1];
  }

  // Shows the values at a point of a map, and marks the point in all maps of the card with the same points.
  function show(map, point) {
    hide();
    const card = map.closest(".sample"), data = dataOf(card);
    const field = data.fields[map.dataset.field], time = Number(map.dataset.time || 0);
    for (const other of card.querySelectorAll(".map[data-field]")) {
      const its = data.fields[other.dataset.field], layout = layoutOf(its, other);
      if (its.sets[0].layout !== field.sets[0].layout) continue;
      const view = other.querySelector(".view"), [left, top, width, height] = plotOf(view);
      const [u, v] = place(layout, Number(other.dataset.time || 0), point);
      if (u < 0 || u > 1 || v < 0 || v > 1) continue;
      const ring = document.createElement("i");
      ring.className = layout.kind === "line" ? "ring upright" : "ring";
      ring.style.left = `${100 * (left + u * width)}%`;
      ring.style.top = layout.kind === "line" ? `${100 * top}%` : `${100 * (top + v * height)}%`;
      if (layout.kind === "line") ring.style.height = `${100 * height}%`;
      view.append(ring);
    }
    tip.replaceChildren(...lines(field, time, point).map(line => {
      const row = document.createElement("div");
      row.textContent = line;
      return row;
    }));
    tip.hidden = false;
    shown = { map, point };
    const view = map.querySelector(".view"), box = view.getBoundingClientRect(), [left, top, width, height] = plotOf(view);
    const [u, v] = place(layoutOf(field, map), time, point);
    const x = box.left + box.width * (left + u * width), y = box.top + box.height * (top + v * height);
    const size = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - size.width - 8))}px`;
    tip.style.top = `${y + 14 + size.height > innerHeight ? Math.max(4, y - size.height - 10) : y + 14}px`;
  }

  let dragged = null; // where the pointer that turns a surface was

  function point(event) {
    if (dragged) return hide();
    const view = event.target instanceof Element && event.target.closest(".map[data-field] .view");
    if (!view) return shown && !shown.map.contains(document.activeElement) ? hide() : undefined;
    const map = view.closest(".map"), box = view.getBoundingClientRect(), [left, top, width, height] = plotOf(view);
    const field = dataOf(map.closest(".sample")).fields[map.dataset.field];
    const at = [((event.clientX - box.left) / box.width - left) / width, ((event.clientY - box.top) / box.height - top) / height];
    const found = nearest(layoutOf(field, map), Number(map.dataset.time || 0), at);
    if (found < 0) return hide();
    if (!shown || shown.map !== map || shown.point !== found) show(map, found);
  }
  for (const kind of ["pointermove", "pointerdown"]) document.addEventListener(kind, point);
  document.addEventListener("scroll", hide, { passive: true });

  // Arrow keys move the point of the map that has the focus.
  function moved(layout, point, key) {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[key];
    if (!step) return null;
    if (!layout.plane) return Math.min(layout.count - 1, Math.max(0, point + step[0] + step[1]));
    const [rows, columns] = layout.plane;
    const row = Math.min(rows - 1, Math.max(0, Math.floor(point / columns) + step[0]));
    const column = Math.min(columns - 1, Math.max(0, point % columns + step[1]));
    return row * columns + column;
  }

  for (const card of document.querySelectorAll(".sample")) {
    const seen = new Set();
    for (const map of card.querySelectorAll(".map[data-field]")) {
      const key = `${map.dataset.field} ${map.dataset.time}`;
      if (seen.has(key)) continue; // truth, prediction and error show the same values
      seen.add(key);
      const view = map.querySelector(".view");
      view.tabIndex = 0;
      const solid = view.classList.contains("solid");
      view.setAttribute("aria-description", solid
        ? "Arrow keys turn the surface, plus and minus change its size, Home restores it. With Shift, arrow keys read the values."
        : "Arrow keys read the values of the points.");
      view.addEventListener("keydown", event => {
        if (solid && !event.shiftKey && event.key !== "Escape") return;
        const layout = dataOf(card).fields[map.dataset.field].sets[0].layout;
        const at = shown && shown.map === map ? shown.point : Math.floor(layout.count / 2);
        const next = event.key === "Escape" ? hide() : moved(layout, at, event.key);
        if (next === null || next === undefined) return;
        event.preventDefault();
        show(map, next);
      });
      view.addEventListener("blur", hide);
    }
  }

  // 256 colours of a scale, as red, green, blue.
  function palette(scale) {
    const colours = new Uint8Array(3 * 256), last = scale.stops.length - 1;
    for (let level = 0; level < 256; level++) {
      const position = level / 255 * last, first = Math.min(Math.floor(position), last - 1);
      for (let channel = 0; channel < 3; channel++) {
        const from = scale.stops[first][channel], to = scale.stops[first + 1][channel];
        colours[3 * level + channel] = Math.round(from + (position - first) * (to - from));
      }
    }
    return colours;
  }

  // A function that colours a pixel of an image by a value.
  function painter(image, scale) {
    const colours = palette(scale), width = scale.most - scale.least;
    return (pixel, value, light = 1) => {
      const share = width > 0 ? Math.min(1, Math.max(0, (value - scale.least) / width)) : 0.5;
      const level = 3 * Math.round(255 * share), shown = Number.isFinite(value);
      for (let channel = 0; channel < 3; channel++) {
        image.data[4 * pixel + channel] = light * (shown ? colours[level + channel] : [255, 0, 255][channel]);
      }
      image.data[4 * pixel + 3] = 255;
    };
  }

  // Colours the pixels whose centres lie in a triangle; its corners are [x, y, value], with their depths where `front` has the
  // depth of what is seen at each pixel.
  function triangle(image, paint, [a, b, c], front = null, light = 1) {
    const whole = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
    if (!(Math.abs(whole) > 0)) return;
    const ends = (axis, pick, most) => Math.min(most, Math.max(0, pick(a[axis], b[axis], c[axis])));
    const right = Math.ceil(ends(0, Math.max, image.width)), bottom = Math.ceil(ends(1, Math.max, image.height));
    for (let y = Math.floor(ends(1, Math.min, image.height)); y < bottom; y++) {
      for (let x = Math.floor(ends(0, Math.min, image.width)); x < right; x++) {
        const px = x + 0.5, py = y + 0.5;
        const first = ((b[0] - px) * (c[1] - py) - (b[1] - py) * (c[0] - px)) / whole;
        const second = ((px - a[0]) * (c[1] - a[1]) - (py - a[1]) * (c[0] - a[0])) / whole;
        const third = 1 - first - second;
        if (!(first >= -1e-3 && second >= -1e-3 && third >= -1e-3)) continue;
        const pixel = y * image.width + x, mean = of => first * a[of] + second * b[of] + third * c[of];
        if (front && mean(3) <= front[pixel]) continue;
        if (front) front[pixel] = mean(3);
        paint(pixel, mean(2), light);
      }
    }
  }

  // Draws the values of the points of a layout at one time.
  function draw(canvas, layout, time, values, scale) {
    const still = layout.kind === "grid";
    const [width, height] = still ? [layout.plane[1], layout.plane[0]] : layout.size.map(side => 2 * side);
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    const context = canvas.getContext("2d"), image = context.createImageData(width, height);
    const paint = painter(image, scale);
    if (still) {
      for (let point = 0; point < layout.count; point++) paint(point, values(point));
    } else if (layout.kind === "triangles" && !layout.triangles.length) {
      Triangles.discs(image, layout, time, values, paint);
    } else if (layout.kind === "triangles") {
      Triangles.draw(image, layout, time, values, (corners, front, light) => triangle(image, paint, corners, front, light));
    } else {
      const corner = point => {
        const [u, v] = place(layout, time, point);
        return [u * width, v * height, values(point)];
      };
      if (layout.kind === "mesh") {
        const [rows, columns] = layout.plane;
        const corners = Array.from({ length: layout.count }, (_, point) => corner(point));
        for (let row = 1; row < rows; row++) {
          for (let column = 1; column < columns; column++) {
            const last = row * columns + column;
            triangle(image, paint, [corners[last - columns - 1], corners[last - columns], corners[last]]);
            triangle(image, paint, [corners[last - columns - 1], corners[last], corners[last - 1]]);
          }
        }
      } else {
        const radius = Math.min(12, Math.max(2, 0.5 * Math.sqrt(width * height / layout.count)));
        const order = Array.from({ length: layout.count }, (_, point) => point);
        if (layout.depths) order.sort((one, other) => layout.depths.values[one] - layout.depths.values[other]);
        for (const point of order) {
          const [x, y, value] = corner(point);
          for (let row = Math.max(0, Math.floor(y - radius)); row < Math.min(height, y + radius); row++) {
            for (let column = Math.max(0, Math.floor(x - radius)); column < Math.min(width, x + radius); column++) {
              if (Math.hypot(column + 0.5 - x, row + 0.5 - y) <= radius) paint(row * width + column, value);
            }
          }
        }
      }
    }
    context.putImageData(image, 0, 0);
  }

  // Moves the curves of a plot to other values.
  function bend(svg, layout, curves) {
    const [left, top, width, height] = plotOf(svg.parentNode), [least, most] = svg.dataset.range.split(" ").map(Number);
    const size = svg.viewBox.baseVal;
    svg.querySelectorAll("polyline").forEach((line, index) => {
      const corners = [];
      for (let point = 0; point < layout.count; point++) {
        const value = curves[index](point);
        if (!Number.isFinite(value)) continue;
        const share = Math.min(1, Math.max(0, (value - least) / (most - least)));
        const x = left + layout.shares.values[point] * width, y = top + (1 - share) * height;
        corners.push(`${(x * size.width).toFixed(1)},${(y * size.height).toFixed(1)}`);
      }
      line.setAttribute("points", corners.join(" "));
    });
  }

  // Of a map: its layout, its values at a time as a function of the point, and its colours.
  function drawnIn(field, index, time) {
    const [first, second, distance] = field.sets, of = set => point => valueOf(set, time, point);
    if (index < 2) return [field.sets[index].layout, of(field.sets[index]), field.scale];
    const error = distance ? of(distance) : point => of(second)(point) - of(first)(point);
    return [(distance || first).layout, error, field.error];
  }

  const solids = card => [...card.querySelectorAll(".map[data-field] .view.solid")].map(view => view.closest(".map"));

  // Draws the surfaces of a card as they are turned now; a canvas takes the place of the first picture.
  function turn(card) {
    hide();
    for (const map of solids(card)) {
      const picture = map.querySelector("img"), time = Number(map.dataset.time || 0);
      if (picture) {
        const canvas = document.createElement("canvas");
        canvas.className = "smooth";
        canvas.setAttribute("role", "img");
        canvas.setAttribute("aria-label", picture.alt);
        picture.replaceWith(canvas);
      }
      const [layout, values, scale] = drawnIn(dataOf(card).fields[map.dataset.field], Number(map.dataset.set || 0), time);
      draw(map.querySelector("canvas"), layout, time, values, scale);
    }
  }

  // Surfaces turn with the mouse, a finger or the arrow keys, all of a card together.
  for (const card of document.querySelectorAll(".sample")) {
    let waiting = 0;
    const by = (azimuth, elevation) => {
      const data = dataOf(card);
      data.view = [data.view[0] + azimuth, Math.max(-90, Math.min(90, data.view[1] + elevation))];
      waiting = waiting || requestAnimationFrame(() => {
        waiting = 0;
        turn(card);
      });
    };
    for (const map of solids(card)) {
      const view = map.querySelector(".view");
      view.addEventListener("pointerdown", event => {
        view.setPointerCapture(event.pointerId);
        dragged = [event.clientX, event.clientY];
      });
      view.addEventListener("pointermove", event => {
        if (!dragged || !view.hasPointerCapture(event.pointerId)) return;
        by((dragged[0] - event.clientX) * 0.6, (event.clientY - dragged[1]) * 0.6);
        dragged = [event.clientX, event.clientY];
      });
      for (const end of ["pointerup", "pointercancel"]) view.addEventListener(end, () => (dragged = null));
      view.addEventListener("dragstart", event => event.preventDefault());
      view.addEventListener("keydown", event => {
        const step = { ArrowLeft: [8, 0], ArrowRight: [-8, 0], ArrowUp: [0, -8], ArrowDown: [0, 8] }[event.key];
        const zoom = { "+": 1.2, "-": 1 / 1.2 }[event.key];
        if (event.shiftKey && step || !(step || zoom || event.key === "Home")) return;
        event.preventDefault();
        const data = dataOf(card);
        if (zoom) data.zoom = Math.max(0.2, Math.min(20, data.zoom * zoom));
        if (event.key === "Home") Object.assign(data, { view: data.first.slice(), zoom: 1 });
        by(...(step || [0, 0]));
      });
    }
  }

  for (const player of document.querySelectorAll(".player")) {
    const card = player.closest(".sample");
    const [button, slider, output] = ["button", "input", "output"].map(name => player.querySelector(name));
    const maps = [...player.querySelectorAll(".map")];
    const name = button.getAttribute("aria-label").replace("Play ", "");
    let timer = 0;

    function render() {
      const data = dataOf(card), time = Number(slider.value);
      for (const map of maps) {
        const field = data.fields[map.dataset.field], svg = map.querySelector("svg"), index = Number(map.dataset.set);
        const of = number => drawnIn(field, number, time)[1];
        map.dataset.time = time;
        if (svg) {
          bend(svg, field.sets[0].layout, index === 0 ? [of(0), of(1)] : [of(2)]);
        } else {
          const [layout, values, scale] = drawnIn(field, index, time);
          draw(map.querySelector("canvas"), layout, time, values, scale);
        }
      }
      output.textContent = data.fields[maps[0].dataset.field].times[time];
      slider.setAttribute("aria-valuetext", output.textContent);
      if (shown && maps.includes(shown.map)) show(shown.map, shown.point);
    }

    function stop() {
      clearInterval(timer);
      timer = 0;
      button.textContent = "Play";
      button.setAttribute("aria-label", `Play ${name}`);
    }

    button.addEventListener("click", () => {
      if (timer) return stop();
      const count = Number(slider.max) + 1;
      button.textContent = "Pause";
      button.setAttribute("aria-label", `Pause ${name}`);
      timer = setInterval(() => {
        slider.value = (Number(slider.value) + 1) % count;
        render();
      }, Math.min(500, Math.max(80, 5000 / count)));
    });
    slider.addEventListener("input", () => {
      stop();
      render();
    });
    player.hidden = false;
    render();
  }
  document.querySelectorAll(".scripted").forEach(note => (note.hidden = false));
})();
