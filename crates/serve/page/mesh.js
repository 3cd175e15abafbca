// Meshes and clouds of points in the plane or in space, drawn by a rasteriser with a depth buffer.
//
// In the plane a view can be moved and enlarged; in space it can be turned: azimuth about the z axis, elevation above it.

const DARKEST = 0.42; // of a face that looks aside
const LIGHT = [-0.35, 0.45, 0.82]; // right, up, towards the eye
const radians = angle => angle * Math.PI / 180;

// The smallest box around points, and in the plane around the inner ones where few points lie far outside (far fields).
function box(values, axes) {
  const least = [], most = [];
  for (let axis = 0; axis < axes; axis++) {
    const own = Float32Array.from({ length: values.length / axes }, (_, point) => values[point * axes + axis]).filter(Number.isFinite).sort();
    const share = part => own[Math.min(own.length - 1, Math.floor(part * own.length))] ?? 0;
    const [low, high] = [share(0), share(1)], inner = share(0.85) - share(0.15);
    const far = axes === 2 && high - low > 3 * inner && inner > 0;
    least.push(far ? share(0.15) - 0.6 * inner : low);
    most.push(far ? share(0.85) + 0.6 * inner : high);
  }
  return { least, most };
}

export class MeshLayout {
  // Positions are `[points, 2 or 3]`; triangles three indices each, or null for points alone.
  constructor(positions, axes, triangles) {
    const { least, most } = box(positions, axes);
    Object.assign(this, { positions, axes, solid: axes === 3, count: positions.length / axes });
    this.triangles = triangles && triangles.length ? triangles : null;
    this.centre = least.map((low, axis) => (low + most[axis]) / 2);
    const extent = least.map((low, axis) => Math.max(most[axis] - low, 1e-12));
    this.span = this.solid ? [Math.hypot(...extent), 0.8 * Math.hypot(...extent)] : extent.map(side => 1.03 * side);
    this.aspect = Math.min(2.4, Math.max(0.8, this.span[0] / this.span[1]));
    this.hint = this.solid
      ? "Drag or use arrow keys to turn, plus and minus to zoom, Home to restore. Shift and arrow keys read values."
      : "Arrow keys read values. Drag or Shift and arrow keys to move, plus and minus to zoom, Home to restore.";
    this.reset();
  }

  reset() {
    Object.assign(this, { azimuth: -55, elevation: 24, zoom: 1, shift: [0, 0], seen: null });
  }

  // Moves or turns by shares of the width and the height of the picture.
  drag(right, down) {
    if (this.solid) {
      this.azimuth -= 200 * right;
      this.elevation = Math.min(90, Math.max(-90, this.elevation + 200 * down));
    } else {
      this.shift = [this.shift[0] + right, this.shift[1] + down];
    }
    this.seen = null;
  }

  enlarge(factor, [u, v] = [0.5, 0.5]) {
    const zoom = Math.min(60, Math.max(0.5, this.zoom * factor)), own = zoom / this.zoom;
    if (!this.solid) this.shift = [u - 0.5, v - 0.5].map((share, axis) => share - own * (share - this.shift[axis]));
    this.zoom = zoom;
    this.seen = null;
  }

  // Where all points are, as shares of the width and the height, with their depths towards the eye in shares of the width.
  places() {
    if (this.seen) return this.seen;
    const { positions, axes, centre, count, aspect, zoom } = this;
    const u = new Float32Array(count), v = new Float32Array(count), depth = new Float32Array(count);
    const scale = zoom * Math.min(1 / this.span[0], 1 / (this.span[1] * aspect)); // in shares of the width
    const [azimuth, elevation] = [radians(this.azimuth), radians(this.elevation)];
    const [sa, ca, se, ce] = [Math.sin(azimuth), Math.cos(azimuth), Math.sin(elevation), Math.cos(elevation)];
    for (let point = 0; point < count; point++) {
      const x = positions[point * axes] - centre[0], y = positions[point * axes + 1] - centre[1];
      const z = this.solid ? positions[point * axes + 2] - centre[2] : 0, away = ca * x + sa * y;
      const right = this.solid ? ca * y - sa * x : x, up = this.solid ? ce * z - se * away : y;
      u[point] = 0.5 + this.shift[0] + scale * right;
      v[point] = 0.5 + this.shift[1] - scale * up * aspect;
      depth[point] = scale * (ce * away + se * z);
    }
    return (this.seen = { u, v, depth });
  }

  paint(canvas, values, scale, width) {
    const height = Math.max(1, Math.round(width / this.aspect));
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    const context = canvas.getContext("2d"), image = context.createImageData(width, height);
    const target = { data: image.data, width, height, scale, front: this.solid ? new Float32Array(width * height).fill(-Infinity) : null };
    if (this.triangles) this.faces(target, values);
    else this.discs(target, values);
    context.putImageData(image, 0, 0);
  }

  faces({ data, width, height, scale, front }, values) {
    const { u, v, depth } = this.places(), { triangles, solid } = this, { colours } = scale;
    for (let first = 0; first < triangles.length; first += 3) {
      const [a, b, c] = [triangles[first], triangles[first + 1], triangles[first + 2]];
      const ax = u[a] * width, ay = v[a] * height, bx = u[b] * width, by = v[b] * height, cx = u[c] * width, cy = v[c] * height;
      const whole = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax);
      if (!(Math.abs(whole) > 1e-9)) continue;
      const left = Math.max(0, Math.ceil(Math.min(ax, bx, cx) - 0.5)), right = Math.min(width - 1, Math.floor(Math.max(ax, bx, cx) - 0.5));
      const top = Math.max(0, Math.ceil(Math.min(ay, by, cy) - 0.5)), bottom = Math.min(height - 1, Math.floor(Math.max(ay, by, cy) - 0.5));
      if (left > right || top > bottom) continue;
      const light = solid ? lit([bx - ax, by - ay, (depth[b] - depth[a]) * width], [cx - ax, cy - ay, (depth[c] - depth[a]) * width]) : 1;
      for (let y = top; y <= bottom; y++) {
        for (let x = left; x <= right; x++) {
          const px = x + 0.5, py = y + 0.5;
          const wa = ((bx - px) * (cy - py) - (by - py) * (cx - px)) / whole, wb = ((px - ax) * (cy - ay) - (py - ay) * (cx - ax)) / whole;
          const wc = 1 - wa - wb;
          if (wa < -1e-4 || wb < -1e-4 || wc < -1e-4) continue;
          const pixel = y * width + x;
          if (front) {
            const near = wa * depth[a] + wb * depth[b] + wc * depth[c];
            if (near <= front[pixel]) continue;
            front[pixel] = near;
          }
          const level = scale.level(wa * values[a] + wb * values[b] + wc * values[c]), at = 4 * pixel;
          data[at] = light * colours[level];
          data[at + 1] = light * colours[level + 1];
          data[at + 2] = light * colours[level + 2];
          data[at + 3] = 255;
        }
      }
    }
  }

  discs({ data, width, height, scale, front }, values) {
    const { u, v, depth } = this.places(), { count, zoom } = this, { colours } = scale;
    const radius = Math.min(14, Math.max(1.5, 0.42 * Math.sqrt(zoom * width * height / count)));
    for (let point = 0; point < count; point++) {
      const x0 = u[point] * width, y0 = v[point] * height, level = scale.level(values[point]);
      for (let y = Math.max(0, Math.floor(y0 - radius)); y < Math.min(height, y0 + radius); y++) {
        for (let x = Math.max(0, Math.floor(x0 - radius)); x < Math.min(width, x0 + radius); x++) {
          const away = ((x + 0.5 - x0) ** 2 + (y + 0.5 - y0) ** 2) / radius ** 2, pixel = y * width + x;
          if (away > 1 || (front && depth[point] <= front[pixel])) continue;
          if (front) front[pixel] = depth[point];
          const light = front ? 1 - 0.45 * away : 1;
          for (let channel = 0; channel < 3; channel++) data[4 * pixel + channel] = light * colours[level + channel];
          data[4 * pixel + 3] = 255;
        }
      }
    }
  }

  // The point that is seen at a place: the front one of those close to it; -1 if there is none.
  nearest([u, v]) {
    const at = this.places(), reach = 0.035 ** 2;
    let found = -1, best = reach, front = -Infinity;
    for (let point = 0; point < this.count; point++) {
      const away = (at.u[point] - u) ** 2 + ((at.v[point] - v) / this.aspect) ** 2;
      if (away > reach) continue;
      const close = this.solid && away < 2e-4;
      if (close ? at.depth[point] > front : front === -Infinity && away < best) {
        found = point;
        best = away;
        if (close) front = at.depth[point];
      }
    }
    return found;
  }

  place(point) {
    const { u, v } = this.places();
    return [u[point], v[point]];
  }

  where(point) {
    const { positions, axes } = this;
    const at = Array.from({ length: axes }, (_, axis) => `${"xyz"[axis]} ${Number(positions[point * axes + axis].toPrecision(4))}`);
    return `point ${point}, ${at.join(", ")}`.replaceAll("-", "\u2212");
  }

  moved(point, key) {
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[key];
    return step ? Math.min(this.count - 1, Math.max(0, point + step)) : null;
  }

  // What a key does to the view; false for keys that do nothing.
  key(event) {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (step && event.shiftKey !== this.solid) this.drag(0.05 * step[0], 0.05 * step[1]);
    else if (event.key === "+" || event.key === "=") this.enlarge(1.2);
    else if (event.key === "-") this.enlarge(1 / 1.2);
    else if (event.key === "Home") this.reset();
    else return false;
    return true;
  }
}

// The light on a face between two of its sides; both of its faces are lit alike. The second axis of the sides runs down.
function lit(p, q) {
  const normal = [p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], p[0] * q[1] - p[1] * q[0]], length = Math.hypot(...normal);
  if (!(length > 0)) return 1;
  const along = Math.abs(normal[0] * LIGHT[0] - normal[1] * LIGHT[1] + normal[2] * LIGHT[2]) / length;
  return DARKEST + (1 - DARKEST) * Math.min(1, along);
}
