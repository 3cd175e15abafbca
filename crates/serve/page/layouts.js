// How the points of a grid lie in a picture: a plane as one map, a volume as three cuts.
//
// A layout paints values into a canvas, finds the point at a place, the place of a point (both as shares of width and height),
// and says in words where a point is. `mesh.js` has the layout of meshes and clouds.

import { drawPlane } from "./maps.js";

const clamp = (value, most) => Math.min(most, Math.max(0, value));
const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

export class PlaneLayout {
  constructor([rows, columns]) {
    Object.assign(this, { rows, columns, aspect: columns / rows, hint: "Arrow keys read the values of the points." });
  }

  paint(canvas, values, scale) {
    drawPlane(canvas, values, [this.rows, this.columns], scale);
  }

  nearest([u, v]) {
    const { rows, columns } = this;
    return u >= 0 && u < 1 && v >= 0 && v < 1 ? Math.floor(v * rows) * columns + Math.floor(u * columns) : -1;
  }

  place(point) {
    const { rows, columns } = this;
    return [(point % columns + 0.5) / columns, (Math.floor(point / columns) + 0.5) / rows];
  }

  where(point) {
    return `row ${Math.floor(point / this.columns)}, column ${point % this.columns}`;
  }

  // The neighbour of a point in the direction of a key; null for other keys.
  moved(point, key) {
    const step = STEPS[key], { rows, columns } = this;
    if (!step) return null;
    return clamp(Math.floor(point / columns) + step[0], rows - 1) * columns + clamp(point % columns + step[1], columns - 1);
  }
}

// Three cuts through one point: rows and columns, rows and layers, columns and layers, side by side.
export class VolumeLayout {
  constructor([rows, columns, layers]) {
    Object.assign(this, { rows, columns, layers, cut: [rows, columns, layers].map(extent => Math.floor(extent / 2)) });
    const gap = Math.max(1, Math.round(0.04 * (columns + 2 * layers)));
    this.width = columns + 2 * layers + 2 * gap;
    this.height = Math.max(rows, columns);
    this.aspect = this.width / this.height;
    this.cuts = [ // left, which axes run down and right, which is fixed
      { left: 0, axes: [0, 1], fixed: 2 }, { left: columns + gap, axes: [0, 2], fixed: 1 }, { left: columns + layers + 2 * gap, axes: [1, 2], fixed: 0 },
    ];
    this.crisp = true; // smooth pixels would bleed into the gaps
    this.hint = "Click to cut through a point. Arrow keys move it, Page Up and Page Down move between layers.";
  }

  extents() {
    return [this.rows, this.columns, this.layers];
  }

  point([row, column, layer]) {
    return (row * this.columns + column) * this.layers + layer;
  }

  indices(point) {
    return [Math.floor(point / this.layers / this.columns), Math.floor(point / this.layers) % this.columns, point % this.layers];
  }

  paint(canvas, values, scale) {
    const { width, height } = this, extents = this.extents(), { colours } = scale;
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    const context = canvas.getContext("2d"), image = context.createImageData(width, height);
    for (const { left, axes, fixed } of this.cuts) {
      for (let down = 0; down < extents[axes[0]]; down++) {
        for (let right = 0; right < extents[axes[1]]; right++) {
          const at = [];
          at[axes[0]] = down;
          at[axes[1]] = right;
          at[fixed] = this.cut[fixed];
          const level = scale.level(values[this.point(at)]), pixel = 4 * (down * width + left + right);
          for (let channel = 0; channel < 3; channel++) image.data[pixel + channel] = colours[level + channel];
          image.data[pixel + 3] = 255;
        }
      }
    }
    context.putImageData(image, 0, 0);
  }

  nearest([u, v]) {
    const x = Math.floor(u * this.width), y = Math.floor(v * this.height), extents = this.extents();
    for (const { left, axes, fixed } of this.cuts) {
      if (x < left || x >= left + extents[axes[1]] || y < 0 || y >= extents[axes[0]]) continue;
      const at = [];
      at[axes[0]] = y;
      at[axes[1]] = x - left;
      at[fixed] = this.cut[fixed];
      return this.point(at);
    }
    return -1;
  }

  place(point) {
    const at = this.indices(point), { left, axes } = this.cuts.find(cut => at[cut.fixed] === this.cut[cut.fixed]) || this.cuts[0];
    return [(left + at[axes[1]] + 0.5) / this.width, (at[axes[0]] + 0.5) / this.height];
  }

  where(point) {
    const [row, column, layer] = this.indices(point);
    return `row ${row}, column ${column}, layer ${layer}`;
  }

  // Cuts through another point; the maps must be drawn again.
  through(point) {
    this.cut = this.indices(point);
  }

  moved(point, key) {
    const step = { ...STEPS, PageUp: [0, 0, 1], PageDown: [0, 0, -1] }[key];
    if (!step) return null;
    const at = this.indices(point).map((index, axis) => clamp(index + (step[axis] || 0), this.extents()[axis] - 1));
    this.cut = at;
    return this.point(at);
  }
}
