// Meshes of triangles: where their points are drawn, the point at a place, and the picture. A surface in space is seen from
// data.view, the azimuth and the elevation of the viewer in degrees, and can be turned. Points in space without triangles are discs.
"use strict";
const Triangles = (() => {
  const isSolid = layout => layout.kind === "triangles" && layout.positions.length === 3;

  // Coordinates to the right, upwards and to the viewer.
  function turner([azimuth, elevation]) {
    const [a, e] = [azimuth, elevation].map(degrees => degrees * Math.PI / 180);
    const [sin, cos, up, flat] = [Math.sin(a), Math.cos(a), Math.sin(e), Math.cos(e)];
    return (x, y, z) => {
      const along = x * cos + y * sin;
      return [y * cos - x * sin, z * flat - along * up, z * up + along * flat];
    };
  }

  // Half the sides of the window that a map shows, and its middle.
  function shown({ window: { least, most } }, [width, height]) {
    const extent = [0, 1].map(axis => Math.max(most[axis] - least[axis], 1e-30));
    const scale = Math.min(width / extent[0], height / extent[1]);
    return { scale, half: [width / scale / 2, height / scale / 2], middle: [0, 1].map(axis => (least[axis] + most[axis]) / 2) };
  }

  // The points of a surface from a view, about the middle of the map; a surface turns about its own middle.
  function turned(layout, view) {
    const { data, count, positions: [x, y, z] } = layout, { half, middle } = shown(data, layout.size);
    layout.centre = layout.centre || layout.positions.map(axis => {
      const finite = axis.filter(Number.isFinite);
      return finite.length ? (finite.reduce((a, b) => Math.min(a, b)) + finite.reduce((a, b) => Math.max(a, b))) / 2 : 0;
    });
    const [cx, cy, cz] = layout.centre, at = turner(data.first)(cx, cy, cz), turn = turner(view);
    const places = [0, 1, 2].map(() => new Float32Array(count));
    let reach = 1;
    for (let point = 0; point < count; point++) {
      const [right, up, depth] = turn(x[point] - cx, y[point] - cy, z[point] - cz);
      places[0][point] = at[0] + right - middle[0];
      places[1][point] = at[1] + up - middle[1];
      places[2][point] = depth;
      reach = Math.max(reach, Math.abs(places[0][point]) / half[0] || 0, Math.abs(places[1][point]) / half[1] || 0);
    }
    return { places, reach };
  }

  // Of all points: shares of the width and the height of the map, from the upper left corner, and the depth in widths.
  function places(layout, time) {
    const { data, count, size: [width, height] } = layout, solid = isSolid(layout);
    const key = solid ? `${data.view} ${data.zoom}` : `${time}`;
    if (layout.placed && layout.placed.key === key) return layout.placed;
    let { scale, middle } = shown(data, layout.size), right, up, depth;
    if (solid) {
      layout.reach = layout.reach || turned(layout, data.first).reach;
      const now = turned(layout, data.view);
      [right, up, depth] = now.places;
      scale *= data.zoom * Math.min(1, layout.reach / now.reach); // all of it fits, however it is turned
    } else {
      const start = layout.positions[0].length > count ? time * count : 0;
      [right, up] = layout.positions.map((axis, index) =>
        Float32Array.from({ length: count }, (_, point) => axis[start + point] - middle[index]));
    }
    const placed = { key, u: right.map(at => 0.5 + scale * at / width), v: up.map(at => 0.5 - scale * at / height) };
    placed.depth = depth && depth.map(at => scale * at / width);
    return (layout.placed = placed);
  }

  // The corner that is nearest to a place in the front triangle there; -1 if there is none.
  function hit(layout, time, [u, v]) {
    const at = places(layout, time), { triangles } = layout;
    let found = -1, front = -Infinity;
    if (!triangles.length) {
      const [width, height] = layout.size, near = (radius(layout, width, height) / width) ** 2;
      for (let point = 0; point < layout.count; point++) {
        const distance = (at.u[point] - u) ** 2 + ((at.v[point] - v) * height / width) ** 2;
        if (distance <= near && at.depth[point] > front) [found, front] = [point, at.depth[point]];
      }
      return found;
    }
    for (let first = 0; first < triangles.length; first += 3) {
      const [a, b, c] = [triangles[first], triangles[first + 1], triangles[first + 2]];
      const whole = (at.u[b] - at.u[a]) * (at.v[c] - at.v[a]) - (at.v[b] - at.v[a]) * (at.u[c] - at.u[a]);
      const one = ((at.u[b] - u) * (at.v[c] - v) - (at.v[b] - v) * (at.u[c] - u)) / whole;
      const two = ((u - at.u[a]) * (at.v[c] - at.v[a]) - (v - at.v[a]) * (at.u[c] - at.u[a])) / whole;
      const three = 1 - one - two;
      if (!(one >= 0 && two >= 0 && three >= 0)) continue;
      const depth = at.depth ? one * at.depth[a] + two * at.depth[b] + three * at.depth[c] : 0;
      if (depth <= front) continue;
      front = depth;
      found = one >= two && one >= three ? a : two >= three ? b : c;
    }
    return found;
  }

  // The radius of the discs of points in space, in pixels of an image.
  const radius = (layout, width, height) =>
    Math.min(6 * width / layout.size[0], Math.max(1.5, 0.5 * Math.sqrt(3 * width * height / layout.count)));

  // Draws points in space, those at the back first and darker.
  function discs(image, layout, time, values, paint) {
    const at = places(layout, time), { width, height } = image, size = radius(layout, width, height);
    const order = Array.from({ length: layout.count }, (_, point) => point).sort((one, other) => at.depth[one] - at.depth[other]);
    const [back, front] = [at.depth[order[0]], at.depth[order[order.length - 1]]], { back: darkest } = layout.data.light;
    for (const point of order) {
      const [x, y, value] = [at.u[point] * width, at.v[point] * height, values(point)];
      const light = front > back ? darkest + (1 - darkest) * (at.depth[point] - back) / (front - back) : 1;
      for (let row = Math.max(0, Math.floor(y - size)); row < Math.min(height, y + size); row++) {
        for (let column = Math.max(0, Math.floor(x - size)); column < Math.min(width, x + size); column++) {
          if (Math.hypot(column + 0.5 - x, row + 0.5 - y) <= size) paint(row * width + column, value, light);
        }
      }
    }
  }

  // The share of its colour that a triangle shows; corners are [x, y, value, depth] in pixels.
  function lit([a, b, c], { towards, darkest }) {
    const side = (from, to) => [to[0] - from[0], from[1] - to[1], to[3] - from[3]];
    const [p, q] = [side(a, b), side(a, c)];
    const normal = [p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], p[0] * q[1] - p[1] * q[0]];
    const length = Math.hypot(...normal);
    const light = Math.abs(normal[0] * towards[0] + normal[1] * towards[1] + normal[2] * towards[2]) / length;
    return length > 0 ? darkest + (1 - darkest) * light : 1;
  }

  // Draws all triangles into an image; `fill` colours the pixels of one.
  function draw(image, layout, time, values, fill) {
    const at = places(layout, time), { width, height } = image, { triangles } = layout, solid = isSolid(layout);
    const front = solid ? new Float32Array(width * height).fill(-Infinity) : null;
    const corner = point => [at.u[point] * width, at.v[point] * height, values(point), solid ? at.depth[point] * width : 0];
    for (let first = 0; first < triangles.length; first += 3) {
      const corners = [0, 1, 2].map(next => corner(triangles[first + next]));
      fill(corners, front, solid ? lit(corners, layout.data.light) : 1);
    }
  }

  return { isSolid, places, hit, draw, discs };
})();
