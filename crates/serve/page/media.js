// Permeabilities of two phases on a square of cells: random ones as the training samples are, and some that are drawn by rule.
//
// A random medium has one phase where a Gaussian random field with covariance τ² (−Δ + τ²)⁻² and zero normal derivative at the
// walls is below zero, τ = 3, and the other elsewhere (Li et al. 2021).

const TAU = 3;

// Random numbers above 0 and below 1 from a seed (xorshift of 32 bits).
export function random(seed) {
  let state = (Math.imul(seed + 1, 0x9e3779b1) ^ 0x5bd1e995) >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return ((state >>> 0) + 0.5) / 2 ** 32;
  };
}

// A standard normal number (Box and Muller 1958).
const normal = uniform => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());

// `[cells, modes]` √2 cos(πkx) at the centres of cells, 1 for k = 0.
function cosines(cells, modes) {
  const table = new Float32Array(cells * modes);
  for (let cell = 0; cell < cells; cell++) {
    for (let k = 0; k < modes; k++) table[cell * modes + k] = k ? Math.SQRT2 * Math.cos(Math.PI * k * (cell + 0.5) / cells) : 1;
  }
  return table;
}

// `[rows, columns]` first · secondᵀ, with the first as `[rows, inner]` and the second as `[columns, inner]`.
function product(first, second, [rows, inner, columns]) {
  const result = new Float32Array(rows * columns);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      let sum = 0;
      for (let at = 0, one = row * inner, other = column * inner; at < inner; at++) sum += first[one + at] * second[other + at];
      result[row * columns + column] = sum;
    }
  }
  return result;
}

// `[cells, cells]` a medium of the training distribution.
export function randomMedium(cells, [low, high], seed) {
  const modes = Math.min(cells, 192), uniform = random(seed); // finer modes change single cells at the interfaces
  const amplitudes = new Float32Array(modes * modes);
  for (let k = 1; k < modes * modes; k++) {
    const eigenvalue = Math.PI ** 2 * (Math.floor(k / modes) ** 2 + (k % modes) ** 2);
    amplitudes[k] = normal(uniform) / (1 + eigenvalue / TAU ** 2);
  }
  const table = cosines(cells, modes);
  const along = product(table, amplitudes, [cells, modes, modes]); // [cells, modes]
  return product(along, table, [cells, modes, cells]).map(value => (value >= 0 ? high : low));
}

// The high phase as winding channels in the low one.
export function channels(cells, [low, high], seed) {
  const uniform = random(seed), count = 3 + Math.floor(3 * uniform()), turn = uniform() < 0.5;
  const waves = Array.from({ length: count }, (_, index) => ({
    centre: (index + 0.5 + 0.2 * (uniform() - 0.5)) / count, width: 0.025 + 0.03 * uniform(),
    reach: 0.03 + 0.06 * uniform(), length: 1 + 1.5 * uniform(), phase: 2 * Math.PI * uniform(),
  }));
  return ruled(cells, (x, y) => {
    const [along, across] = turn ? [y, x] : [x, y];
    const inside = wave => Math.abs(across - wave.centre - wave.reach * Math.sin(2 * Math.PI * wave.length * along + wave.phase)) < wave.width;
    return waves.some(inside) ? high : low;
  });
}

// Discs of the low phase in the high one.
export function discs(cells, [low, high], seed) {
  const uniform = random(seed), placed = [];
  for (let attempt = 0; attempt < 400 && placed.length < 24; attempt++) {
    const disc = { x: uniform(), y: uniform(), radius: 0.04 + 0.07 * uniform() };
    const apart = other => Math.hypot(disc.x - other.x, disc.y - other.y) > disc.radius + other.radius + 0.02;
    if (placed.every(apart)) placed.push(disc);
  }
  return ruled(cells, (x, y) => (placed.some(disc => Math.hypot(x - disc.x, y - disc.y) < disc.radius) ? low : high));
}

// A medium from a rule for the centres of cells; x runs along a row.
function ruled(cells, rule) {
  return Float32Array.from({ length: cells * cells }, (_, at) => rule((at % cells + 0.5) / cells, (Math.floor(at / cells) + 0.5) / cells));
}

// A medium that is drawn by hand.
export class Drawing {
  constructor(cells, phases) {
    Object.assign(this, { cells, phases, values: new Float32Array(cells * cells).fill(phases[0]), past: [] });
  }

  // Remembers the medium before a change, so that it can be undone.
  keep() {
    this.past.push(this.values.slice());
    if (this.past.length > 30) this.past.shift();
  }

  undo() {
    this.values = this.past.pop() || this.values;
  }

  // Paints along a line from one place to another, both as shares of the sides, with a round brush.
  stroke([x0, y0], [x1, y1], radius, value) {
    const { cells, values } = this, [dx, dy] = [x1 - x0, y1 - y0], length = dx * dx + dy * dy;
    const reach = Math.max(radius, 0.5 / cells);
    const range = (a, b) => [Math.max(0, Math.floor((Math.min(a, b) - reach) * cells)), Math.min(cells, Math.ceil((Math.max(a, b) + reach) * cells))];
    const [[left, right], [top, bottom]] = [range(x0, x1), range(y0, y1)];
    for (let row = top; row < bottom; row++) {
      for (let column = left; column < right; column++) {
        const [x, y] = [(column + 0.5) / cells - x0, (row + 0.5) / cells - y0];
        const along = length > 0 ? Math.min(1, Math.max(0, (x * dx + y * dy) / length)) : 0;
        if (Math.hypot(x - along * dx, y - along * dy) <= reach) values[row * cells + column] = value;
      }
    }
  }

  // Every `stride`-th row and column, starting with the first: what the model is given.
  thinned(stride) {
    const { cells, values } = this, side = Math.ceil(cells / stride);
    return Float32Array.from({ length: side * side }, (_, at) => values[Math.floor(at / side) * stride * cells + (at % side) * stride]);
  }

  // Takes an array of the size of the drawing, or of the model's grid, whose cells are then repeated.
  take(values, stride) {
    const { cells } = this, side = Math.ceil(cells / stride);
    const nearest = index => Math.min(side - 1, Math.round(index / stride));
    this.values = values.length === cells * cells ? Float32Array.from(values)
      : Float32Array.from({ length: cells * cells }, (_, at) => values[nearest(Math.floor(at / cells)) * side + nearest(at % cells)]);
  }
}
