//! The Euler equations of a perfect gas: ∂ρ/∂t + ∇·(ρv) = 0, ∂(ρv)/∂t + ∇·(ρv vᵀ + p) = 0, ∂E/∂t + ∇·((E + p)v) = 0.
//!
//! E = p / (γ − 1) + ρ|v|²/2. Fluxes through a face: Roe (1981) between two states, Steger and Warming (1981) at the
//! border to the free stream, and the pressure at a wall. Roe's flux takes numbers or vectors of them.

use crate::real::Real;

/// γ, the ratio of specific heats of air.
pub const GAMMA: f64 = 1.4;

/// ρ, ρu, ρv, E
pub type Conserved = [f64; 4];

/// ρ, u, v, p
pub type Primitive = [f64; 4];

/// A linear map between conserved states, row by row.
pub type Block = [[f64; 4]; 4];

/// ρ, u, v, p of a conserved state.
pub fn primitive([density, x, y, energy]: Conserved) -> Primitive {
    let (u, v) = (x / density, y / density);
    [density, u, v, (GAMMA - 1.0) * (energy - (x * u + y * v) / 2.0)]
}

/// ρ, ρu, ρv, E of a primitive state.
#[inline(always)]
pub fn conserved<R: Real>([density, u, v, pressure]: [R; 4]) -> [R; 4] {
    [density, density * u, density * v, pressure / (GAMMA - 1.0) + density * (u * u + v * v) / 2.0]
}

/// √(γ p / ρ)
pub fn sound_speed([density, _, _, pressure]: Primitive) -> f64 {
    (GAMMA * pressure / density).sqrt()
}

/// |v| / √(γ p / ρ)
pub fn mach(state: Primitive) -> f64 {
    state[1].hypot(state[2]) / sound_speed(state)
}

/// H = (E + p) / ρ
#[inline(always)]
pub fn total_enthalpy<R: Real>([density, u, v, pressure]: [R; 4]) -> R {
    pressure * (GAMMA / (GAMMA - 1.0)) / density + (u * u + v * v) / 2.0
}

/// The free stream with ρ = p = 1, a Mach number, and an angle to the x axis in radians.
pub fn stream(mach: f64, angle: f64) -> Primitive {
    let speed = mach * GAMMA.sqrt();
    [1.0, speed * angle.cos(), speed * angle.sin(), 1.0]
}

/// Roe's mean with weights 1 and `root`. Inside vectors, a closure in its place would be a call.
#[inline(always)]
fn weighted<R: Real>(root: R, left: R, right: R) -> R {
    (left + root * right) / (root + 1.0)
}

/// A face between two volumes, or several.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Face<R> {
    /// Its length.
    pub length: R,
    /// The unit vector across it.
    pub normal: [R; 2],
}

impl Face<f64> {
    /// The face whose normal has its length.
    pub fn new([x, y]: [f64; 2]) -> Self {
        let length = x.hypot(y);
        Self { length, normal: [x / length, y / length] }
    }
}

/// f·n through a face of length 1.
#[inline(always)]
fn flux<R: Real>([density, u, v, pressure]: [R; 4], [x, y]: [R; 2]) -> [R; 4] {
    let normal_velocity = u * x + v * y;
    let mass = density * normal_velocity;
    let enthalpy = total_enthalpy([density, u, v, pressure]);
    [mass, mass * u + pressure * x, mass * v + pressure * y, mass * enthalpy]
}

/// The eigenvectors of ∂(f·n)/∂w at one state: two sound waves, and the entropy and shear waves that move with the
/// flow.
struct Waves<R> {
    normal: [R; 2],
    velocity: [R; 2],
    /// Component along the normal.
    normal_velocity: R,
    /// Component along the face.
    tangential_velocity: R,
    kinetic: R,
    enthalpy: R,
    sound: R,
}

impl<R: Real> Waves<R> {
    #[inline(always)]
    fn new(velocity: [R; 2], enthalpy: R, normal: [R; 2]) -> Self {
        let [u, v] = velocity;
        let kinetic = (u * u + v * v) / 2.0;
        let sound = ((enthalpy - kinetic) * (GAMMA - 1.0)).sqrt();
        let [x, y] = normal;
        let (normal_velocity, tangential_velocity) = (u * x + v * y, v * x - u * y);
        Self { normal, velocity, normal_velocity, tangential_velocity, kinetic, enthalpy, sound }
    }

    #[inline(always)]
    fn at(state: [R; 4], normal: [R; 2]) -> Self {
        Self::new([state[1], state[2]], total_enthalpy(state), normal)
    }

    /// Roe's mean, at which f(right) − f(left) = A (right − left) exactly.
    #[inline(always)]
    fn between(left: [R; 4], right: [R; 4], normal: [R; 2]) -> Self {
        let root = (right[0] / left[0]).sqrt();
        let velocity = [weighted(root, left[1], right[1]), weighted(root, left[2], right[2])];
        Self::new(velocity, weighted(root, total_enthalpy(left), total_enthalpy(right)), normal)
    }

    /// Speeds of the sound wave against the normal, of the entropy and shear waves, and of the sound wave along the
    /// normal.
    #[inline(always)]
    fn speeds(&self) -> [R; 3] {
        [self.normal_velocity - self.sound, self.normal_velocity, self.normal_velocity + self.sound]
    }

    /// Splits `state` into waves, multiplies each wave by its speed, and adds them up.
    #[inline(always)]
    fn transport(&self, state: [R; 4], [backward, flow, forward]: [R; 3]) -> [R; 4] {
        let Self { normal: [x, y], velocity: [u, v], normal_velocity, tangential_velocity, .. } = *self;
        let Self { kinetic, enthalpy, sound, .. } = *self;
        let pressure = (kinetic * state[0] - u * state[1] - v * state[2] + state[3]) * (GAMMA - 1.0);
        let momentum = sound * (state[1] * x + state[2] * y - normal_velocity * state[0]);
        let shear = flow * (state[2] * x - state[1] * y - tangential_velocity * state[0]);
        let square = sound * sound;
        let entropy = flow * (state[0] - pressure / square);
        let left = backward * (pressure - momentum) / (square * 2.0);
        let right = forward * (pressure + momentum) / (square * 2.0);
        let (density, acoustic) = (left + entropy + right, sound * (right - left));
        [
            density,
            density * u + acoustic * x - shear * y,
            density * v + acoustic * y + shear * x,
            (left + right) * enthalpy + acoustic * normal_velocity + entropy * kinetic + shear * tangential_velocity,
        ]
    }
}

impl Waves<f64> {
    /// [`Waves::transport`] as a matrix, times `scale`.
    fn block(&self, speeds: [f64; 3], scale: f64) -> Block {
        let mut block = [[0.0; 4]; 4];
        for column in 0..4 {
            let mut unit = [0.0; 4];
            unit[column] = scale;
            let image = self.transport(unit, speeds);
            for (row, value) in block.iter_mut().zip(image) {
                row[column] = value;
            }
        }
        block
    }
}

/// (f(left) + f(right) − |A| (right − left)) / 2 through a face; its normal points from left to right. The states are
/// primitive.
#[inline(always)]
pub fn roe_flux<R: Real>(left: [R; 4], right: [R; 4], Face { length, normal }: Face<R>) -> [R; 4] {
    let waves = Waves::between(left, right, normal);
    let (before, after) = (conserved(left), conserved(right));
    let jump = [after[0] - before[0], after[1] - before[1], after[2] - before[2], after[3] - before[3]];
    let [backward, flow, forward] = waves.speeds();
    let upwind = waves.transport(jump, [backward.abs(), flow.abs(), forward.abs()]);
    let mut through = flux(left, normal);
    let right_flux = flux(right, normal);
    for k in 0..4 {
        through[k] = length * (through[k] + right_flux[k] - upwind[k]) / 2.0;
    }
    through
}

/// Derivatives of [`roe_flux`] with respect to both conserved states, with |A| frozen.
pub fn roe_blocks(left: Primitive, right: Primitive, Face { length, normal }: Face<f64>) -> [Block; 2] {
    let half = length / 2.0;
    let waves = Waves::between(left, right, normal);
    let upwind = waves.block(waves.speeds().map(f64::abs), half);
    let exact = [left, right].map(|state| {
        let waves = Waves::at(state, normal);
        waves.block(waves.speeds(), half)
    });
    let sum = |sign: f64, exact: &Block| {
        let mut block = *exact;
        for (row, other) in block.iter_mut().zip(&upwind) {
            row.iter_mut().zip(other).for_each(|(value, other)| *value += sign * other);
        }
        block
    };
    [sum(1.0, &exact[0]), sum(-1.0, &exact[1])]
}

/// A⁺ w + A⁻ w∞ through a border face with A at the inner state w.
pub fn far_field_flux(inner: Primitive, stream: Primitive, normal: [f64; 2]) -> Conserved {
    let Face { length, normal } = Face::new(normal);
    let waves = Waves::at(inner, normal);
    let leaving = waves.transport(conserved(inner), waves.speeds().map(|speed| speed.max(0.0)));
    let entering = waves.transport(conserved(stream), waves.speeds().map(|speed| speed.min(0.0)));
    [0, 1, 2, 3].map(|k| length * (leaving[k] + entering[k]))
}

/// A⁺: the derivative of [`far_field_flux`] with A frozen.
pub fn far_field_block(inner: Primitive, normal: [f64; 2]) -> Block {
    let Face { length, normal } = Face::new(normal);
    let waves = Waves::at(inner, normal);
    waves.block(waves.speeds().map(|speed| speed.max(0.0)), length)
}

/// The flux through a wall is the pressure on it.
pub fn wall_flux(inner: Primitive, [x, y]: [f64; 2]) -> Conserved {
    [0.0, inner[3] * x, inner[3] * y, 0.0]
}

/// The derivative of [`wall_flux`].
pub fn wall_block([_, u, v, _]: Primitive, [x, y]: [f64; 2]) -> Block {
    let pressure = [(u * u + v * v) / 2.0, -u, -v, 1.0].map(|value| (GAMMA - 1.0) * value);
    [[0.0; 4], pressure.map(|value| value * x), pressure.map(|value| value * y), [0.0; 4]]
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEFT: Primitive = [1.2, 0.9, -0.3, 1.1];
    const RIGHT: Primitive = [0.7, 1.6, 0.2, 0.6];
    const NORMAL: [f64; 2] = [0.3, -0.4]; // of length 1/2

    /// Asserts that each component agrees within `tolerance`.
    fn close(found: Conserved, wanted: Conserved, tolerance: f64) {
        let error = (0..4).map(|k| (found[k] - wanted[k]).abs()).fold(0.0, f64::max);
        assert!(error < tolerance, "{found:?} against {wanted:?}");
    }

    /// The exact flux through [`NORMAL`].
    fn exact(state: Primitive) -> Conserved {
        flux(state, [0.6, -0.8]).map(|value| value / 2.0)
    }

    #[test]
    fn primitive_and_conserved_states_are_inverse() {
        close(primitive(conserved(LEFT)), LEFT, 1e-15);
        let state = stream(0.8, 0.1);
        assert!((mach(state) - 0.8).abs() < 1e-15 && (state[2] / state[1] - 0.1f64.tan()).abs() < 1e-15);
    }

    #[test]
    fn the_flux_between_equal_states_is_exact() {
        close(roe_flux(LEFT, LEFT, Face::new(NORMAL)), exact(LEFT), 1e-15);
        close(far_field_flux(LEFT, LEFT, NORMAL), exact(LEFT), 1e-15);
        close(wall_flux([1.2, 0.4, 0.3, 1.1], NORMAL), exact([1.2, 0.4, 0.3, 1.1]), 1e-15); // a flow along the wall
    }

    #[test]
    fn the_flux_of_supersonic_flow_depends_only_on_the_upstream_state() {
        let fast = |state: Primitive| [state[0], state[1] + 3.0, state[2] - 4.0, state[3]];
        close(roe_flux(fast(LEFT), fast(RIGHT), Face::new(NORMAL)), exact(fast(LEFT)), 1e-13);
        close(far_field_flux(fast(LEFT), RIGHT, NORMAL), exact(fast(LEFT)), 1e-13);
    }

    #[test]
    fn reversing_the_face_reverses_the_flux() {
        let back = roe_flux(RIGHT, LEFT, Face::new(NORMAL.map(|value| -value)));
        close(roe_flux(LEFT, RIGHT, Face::new(NORMAL)), back.map(|value| -value), 1e-15);
    }

    /// Rankine and Hugoniot: both sides of a steady shock have the same flux, and Roe's flux equals it.
    #[test]
    fn roes_flux_is_exact_at_a_steady_shock() {
        let before: Primitive = [1.0, 2.0 * GAMMA.sqrt(), 0.0, 1.0]; // Mach 2
        let density = (GAMMA + 1.0) * 4.0 / ((GAMMA - 1.0) * 4.0 + 2.0);
        let after = [density, before[1] / density, 0.0, 1.0 + 2.0 * GAMMA / (GAMMA + 1.0) * 3.0];
        close(flux(before, [1.0, 0.0]), flux(after, [1.0, 0.0]), 1e-14);
        close(roe_flux(before, after, Face::new([1.0, 0.0])), flux(before, [1.0, 0.0]), 1e-14);
    }

    /// The frozen |A| has no effect where both states are equal, so differences of the flux give the derivatives there.
    #[test]
    fn blocks_are_the_derivatives_of_their_fluxes() {
        let epsilon = 1e-6;
        let image = |block: &Block, column: usize| [0, 1, 2, 3].map(|row| block[row][column]);
        for column in 0..4 {
            let moved = |sign: f64| {
                let mut state = conserved(LEFT);
                state[column] += sign * epsilon;
                primitive(state)
            };
            let slope = |function: &dyn Fn(Primitive) -> Conserved| {
                let (up, down) = (function(moved(1.0)), function(moved(-1.0)));
                [0, 1, 2, 3].map(|k| (up[k] - down[k]) / (2.0 * epsilon))
            };
            let [left, right] = roe_blocks(LEFT, LEFT, Face::new(NORMAL));
            close(image(&left, column), slope(&|state| roe_flux(state, LEFT, Face::new(NORMAL))), 1e-8);
            close(image(&right, column), slope(&|state| roe_flux(LEFT, state, Face::new(NORMAL))), 1e-8);
            close(image(&wall_block(LEFT, NORMAL), column), slope(&|state| wall_flux(state, NORMAL)), 1e-8);
            let leaving = far_field_block(LEFT, NORMAL);
            close(image(&leaving, column), slope(&|state| far_field_flux(state, LEFT, NORMAL)), 1e-8);
        }
    }
}
