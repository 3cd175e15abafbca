// Fields on the points of a sample, from arrays whose axes are [samples or snapshots?, ...grid, channels?].

// The axes of the grid of a card; those of a cloud come from the positions of the sample.
export function gridShape(grid, positions) {
  if (grid.kind === "plane") return [grid.rows, grid.columns];
  if (grid.kind === "volume") return [grid.rows, grid.columns, grid.layers];
  if (grid.kind === "cloud" && positions) return [positions.shape[positions.shape.length - 2]];
  return [grid.points];
}

const product = extents => extents.reduce((all, extent) => all * extent, 1);
const same = (one, other) => one.length === other.length && one.every((extent, axis) => extent === other[axis]);

// A field: `frames` states (snapshots, or samples of a batch) of `channels` values at `points` points.
export class Field {
  constructor({ name, unit }, values, { frames, points, channels }) {
    Object.assign(this, { name, unit, values, frames, points, channels });
  }

  // Reads an array; null where it does not lie on the points. Axes that fit in several ways are read with as many channels as
  // the card says.
  static of(kind, { shape, values }, grid) {
    const points = product(grid), found = [];
    for (const inner of [grid, [points]]) {
      for (let first = 0; first + inner.length <= shape.length; first++) {
        if (!same(shape.slice(first, first + inner.length), inner)) continue;
        const channels = product(shape.slice(first + inner.length));
        found.push(new Field(kind, values, { frames: product(shape.slice(0, first)), points, channels }));
      }
    }
    return found.find(field => field.channels === kind.channels) || found[0] || null;
  }

  // `[points]` one channel of one frame; `size` is the length of the vector of all channels.
  at(frame, channel) {
    const { values, points, channels } = this, first = Math.min(frame, this.frames - 1) * points * channels;
    const one = (point, own) => values[first + point * channels + own];
    if (channel !== "size") return Float32Array.from({ length: points }, (_, point) => one(point, channel));
    const square = (point, own) => (own < 0 ? 0 : one(point, own) ** 2 + square(point, own - 1));
    return Float32Array.from({ length: points }, (_, point) => Math.sqrt(square(point, channels - 1)));
  }

  // What can be shown of it: { label, field, channel }.
  choices() {
    const { name, channels } = this;
    if (channels === 1) return [{ label: name, field: this, channel: 0 }];
    const size = channels <= 3 ? [{ label: `${name}, length`, field: this, channel: "size" }] : [];
    const letter = own => (channels <= 3 ? "xyz"[own] : own + 1);
    return [...Array.from({ length: channels }, (_, own) => ({ label: `${name} ${letter(own)}`, field: this, channel: own })), ...size];
  }
}

// Whether the points of a plane lie as evenly as its pixels would, so that it needs no mesh.
export function isEven(positions, [rows, columns]) {
  const { shape, values } = positions, axes = shape[shape.length - 1];
  if (axes !== 2 || values.length !== rows * columns * 2) return false;
  const at = (row, column, axis) => values[(row * columns + column) * 2 + axis];
  const [fast, slow] = Math.abs(at(0, columns - 1, 0) - at(0, 0, 0)) > Math.abs(at(rows - 1, 0, 0) - at(0, 0, 0)) ? [0, 1] : [1, 0];
  const along = (at(0, columns - 1, fast) - at(0, 0, fast)) / (columns - 1), down = (at(rows - 1, 0, slow) - at(0, 0, slow)) / (rows - 1);
  const slack = 1e-3 * Math.max(Math.abs(along) * columns, Math.abs(down) * rows);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      if (Math.abs(at(row, column, fast) - at(0, 0, fast) - column * along) > slack) return false;
      if (Math.abs(at(row, column, slow) - at(0, 0, slow) - row * down) > slack) return false;
    }
  }
  return true;
}

// The triangles of the quadrilaterals between the points of a plane.
export function planeTriangles([rows, columns]) {
  const triangles = new Uint32Array(6 * (rows - 1) * (columns - 1));
  let at = 0;
  for (let row = 1; row < rows; row++) {
    for (let column = 1; column < columns; column++) {
      const last = row * columns + column, above = last - columns;
      triangles.set([above - 1, above, last, above - 1, last, last - 1], at);
      at += 6;
    }
  }
  return triangles;
}
