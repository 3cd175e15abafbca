//! Parameters and states: names as in a weights file, and how each is drawn before training.

use super::activation::Activation;
use super::pass::Pass;
use super::probe::Probe;
use super::state::{Presence, State};
use lamo_tensor::{DeviceError, Graph, MODEL_STATES, Program, Random, Section, Shape, Tensor};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::rc::Rc;

/// How a parameter is drawn before training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Initial {
    /// One number everywhere.
    Constant(f64),
    /// Uniform on `[low, high)`.
    Uniform {
        /// Lower bound.
        low: f64,
        /// Upper bound.
        high: f64,
    },
    /// Normal with mean 0.
    Normal {
        /// Standard deviation.
        deviation: f64,
    },
    /// ln U(low, high): a decay rate whose exponential is uniform.
    LogUniform {
        /// Lower bound of the exponential.
        low: f64,
        /// Upper bound of the exponential.
        high: f64,
    },
    /// softplus⁻¹ of a step drawn log-uniformly from [10⁻³, 10⁻¹] (Mamba).
    StepBias,
    /// A matrix with orthonormal rows or columns, whichever are fewer.
    Orthogonal,
    /// Squares of c rows on top of each other, each (Q + 1)/c with an orthogonal Q, then rows of U(±1/√c) (OFormer).
    NearIdentity {
        /// Number of squares.
        blocks: usize,
    },
}

impl Initial {
    /// U(±1/√fan_in), the default of PyTorch's linear and convolution layers.
    pub fn fan_in(inputs: usize) -> Initial {
        let bound = 1.0 / (inputs as f64).sqrt();
        Initial::Uniform { low: -bound, high: bound }
    }

    /// All values of a parameter.
    pub fn draw(self, shape: &Shape, random: &mut impl Rng) -> Vec<f32> {
        match self {
            Initial::Orthogonal => return orthogonal(shape.dims()[0], shape.count() / shape.dims()[0], random),
            Initial::NearIdentity { blocks } => return near_identity(blocks, shape, random),
            _ => {}
        }
        (0..shape.count()).map(|_| self.draw_one(random) as f32).collect()
    }

    fn draw_one(self, random: &mut impl Rng) -> f64 {
        match self {
            Initial::Constant(value) => value,
            Initial::Uniform { low, high } => low + (high - low) * random.random::<f64>(),
            Initial::Normal { deviation } => deviation * normal(random),
            Initial::LogUniform { low, high } => (low + (high - low) * random.random::<f64>()).ln(),
            Initial::StepBias => {
                let (low, high) = (1e-3_f64.ln(), 1e-1_f64.ln());
                let step = (low + (high - low) * random.random::<f64>()).exp().max(1e-4);
                step + (-(-step).exp_m1()).ln() // softplus⁻¹(Δ) = Δ + ln(1 − e^{−Δ})
            }
            Initial::Orthogonal | Initial::NearIdentity { .. } => unreachable!("drawn as a whole"),
        }
    }
}

/// A standard normal number by Box and Muller; 1 − u lies in (0, 1], where the logarithm is finite.
fn normal(random: &mut impl Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.random::<f64>()).cos()
}

/// Gram–Schmidt on normal vectors along the shorter side.
fn orthogonal(rows: usize, columns: usize, random: &mut impl Rng) -> Vec<f32> {
    let (count, length) = (rows.min(columns), rows.max(columns));
    let mut basis: Vec<Vec<f64>> = Vec::with_capacity(count);
    while basis.len() < count {
        let mut vector: Vec<f64> = (0..length).map(|_| normal(random)).collect();
        for _ in 0..2 {
            // Two passes are enough: the second removes the rounding errors of the first.
            for earlier in &basis {
                let overlap: f64 = earlier.iter().zip(&vector).map(|(a, b)| a * b).sum();
                vector.iter_mut().zip(earlier).for_each(|(v, e)| *v -= overlap * e);
            }
        }
        let norm = vector.iter().map(|v| v * v).sum::<f64>().sqrt();
        vector.iter_mut().for_each(|v| *v /= norm);
        basis.push(vector);
    }
    let entry = |row: usize, column: usize| if rows <= columns { basis[row][column] } else { basis[column][row] };
    (0..rows * columns).map(|i| entry(i / columns, i % columns) as f32).collect()
}

/// `blocks` squares (Q + 1)/c of c columns, then rows of U(±1/√c).
fn near_identity(blocks: usize, shape: &Shape, random: &mut impl Rng) -> Vec<f32> {
    let columns = shape.count() / shape.dims()[0];
    let mut values = Vec::with_capacity(shape.count());
    for _ in 0..blocks {
        let square = orthogonal(columns, columns, random);
        let identity = |place: usize| if place / columns == place % columns { 1.0 } else { 0.0 };
        values.extend(square.iter().enumerate().map(|(place, q)| (q + identity(place)) / columns as f32));
    }
    let (drawn, rest) = (values.len(), Initial::fan_in(columns));
    values.extend((drawn..shape.count()).map(|_| rest.draw_one(random) as f32));
    values
}

/// Default first values of linear maps; a layer may choose its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Style {
    /// PyTorch's default, U(±1/√fan_in) for weight and bias.
    #[default]
    FanIn,
    /// N(0, 0.02²) and zero bias, as in the authors' slice models.
    Small,
}

/// How a parameter starts, and from which stream of random numbers.
struct Start {
    initial: Initial,
    stream: u64,
}

impl Start {
    fn draw(&self, shape: &Shape, seed: u64) -> Vec<f32> {
        let mut random = ChaCha12Rng::seed_from_u64(seed);
        random.set_stream(self.stream);
        self.initial.draw(shape, &mut random)
    }
}

/// A state of the model, and how it starts.
struct DeclaredState<'g> {
    state: State<'g>,
    presence: Presence,
    first: First,
}

/// First values of a state.
enum First {
    Drawn(Start),
    Given(Vec<f32>),
}

/// Streams of random numbers from here on belong to states, so that a new state does not change any parameter.
const STATE_STREAMS: u64 = 1 << 63;

/// All parameters and states of a model under construction.
pub struct Parameters<'g> {
    graph: &'g Graph,
    starts: RefCell<Vec<Start>>,
    states: RefCell<Vec<DeclaredState<'g>>>,
    pass: Pass<'g>,
}

impl<'g> Parameters<'g> {
    /// Declares parameters in `graph`, which must have none yet.
    pub fn new(graph: &'g Graph) -> Self {
        Parameters { graph, starts: RefCell::default(), states: RefCell::default(), pass: Pass::default() }
    }

    /// The outermost scope.
    pub fn root(&self) -> Scope<'_, 'g> {
        Scope { parameters: self, prefix: String::new(), style: Style::default(), activation: Activation::default() }
    }

    /// First values of all parameters, end to end. Each parameter has its own stream of random numbers, so its
    /// values depend only on `seed` and on its position.
    pub fn draw(&self, seed: u64) -> Vec<f32> {
        let sections = self.graph.sections();
        assert_eq!(sections.len(), self.starts.borrow().len(), "the graph had parameters already");
        let mut theta = vec![0.0; sections.iter().map(|section| section.shape.count()).sum()];
        for (section, start) in sections.iter().zip(self.starts.borrow().iter()) {
            theta[section.range()].copy_from_slice(&start.draw(&section.shape, seed));
        }
        theta
    }

    /// First values of all states, end to end.
    pub fn draw_states(&self, seed: u64) -> Vec<f32> {
        let (sections, states) = (self.graph.state_sections(), self.states.borrow());
        let values = sections.iter().zip(states.iter()).flat_map(|(section, declared)| match &declared.first {
            First::Drawn(start) => start.draw(&section.shape, seed),
            First::Given(values) => values.clone(),
        });
        values.collect()
    }

    /// The states, and what a weights file must say about each.
    pub fn states(&self) -> Vec<(Section, Presence)> {
        let presence = self.states.borrow().iter().map(|declared| declared.presence).collect::<Vec<_>>();
        self.graph.state_sections().into_iter().zip(presence).collect()
    }

    /// Whether the model has states.
    pub fn has_states(&self) -> bool {
        !self.states.borrow().is_empty()
    }

    /// Whether the model has states that training may change; computed tables stay as they are.
    pub fn has_changing_states(&self) -> bool {
        self.states.borrow().iter().any(|declared| declared.presence != Presence::Computed)
    }

    /// Says which samples of the batch count in a training pass, `[batch]` of 0 and 1. Statistics over the batch leave the
    /// others out.
    pub fn weigh_samples(&self, weights: Tensor<'g>) {
        self.pass.weigh(weights);
    }

    /// Gives the training passes random numbers. Without them, dropout and stochastic depth are off.
    pub fn draw_from(&self, random: &Random<'g>) {
        self.pass.draw_from(random.clone());
    }

    /// Gives the next factors of dropout and stochastic depth in the order in which the layers ask for them.
    pub(crate) fn give_factors(&self, factors: impl IntoIterator<Item = Tensor<'g>>) {
        self.pass.give(factors);
    }

    /// Asks the layers to show their mixings, slices and tokens in the passes from now on. With `replaced`, the result of each
    /// mixing is an input of the program, [`Probe::replacement`].
    pub fn probe(&self, replaced: bool) -> Rc<Probe<'g>> {
        let probe = Rc::new(Probe::new(self.graph, replaced));
        self.pass.probe_with(Rc::clone(&probe));
        probe
    }

    /// Samples that a batch must have, as the training passes so far have asked.
    pub fn least_batch(&self) -> usize {
        self.pass.least_batch()
    }

    /// Makes the program keep what the training passes so far have made of the states.
    pub fn store_states(&self) {
        self.states.borrow().iter().for_each(|declared| declared.state.store());
    }

    /// Draws all parameters and states of a compiled program.
    pub fn try_initialise(&self, program: &mut Program, seed: u64) -> Result<(), DeviceError> {
        if self.has_states() {
            program.try_write(MODEL_STATES, &self.draw_states(seed))?;
        }
        program.try_write(lamo_tensor::PARAMETERS, &self.draw(seed))
    }

    /// [`Parameters::try_initialise`] for tests and CPU programs; panics where the device fails.
    pub fn initialise(&self, program: &mut Program, seed: u64) {
        self.try_initialise(program, seed).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// A place in the tree of names.
#[derive(Clone)]
pub struct Scope<'a, 'g> {
    parameters: &'a Parameters<'g>,
    prefix: String,
    style: Style,
    activation: Activation,
}

impl<'a, 'g> Scope<'a, 'g> {
    /// The scope `name` inside this one.
    pub fn enter(&self, name: &str) -> Scope<'a, 'g> {
        Scope { prefix: format!("{}{name}.", self.prefix), ..self.clone() }
    }

    /// This scope with another style.
    pub fn with_style(&self, style: Style) -> Scope<'a, 'g> {
        Scope { style, ..self.clone() }
    }

    /// How linear maps start here.
    pub fn style(&self) -> Style {
        self.style
    }

    /// This scope with another activation.
    pub fn with_activation(&self, activation: Activation) -> Scope<'a, 'g> {
        Scope { activation, ..self.clone() }
    }

    /// What stands between the maps of the MLPs here whose authors leave the choice.
    pub fn activation(&self) -> Activation {
        self.activation
    }

    /// The graph the parameters belong to.
    pub fn graph(&self) -> &'g Graph {
        self.parameters.graph
    }

    /// Declares a parameter.
    pub fn parameter(&self, name: &str, shape: impl Into<Shape>, initial: Initial) -> Tensor<'g> {
        let stream = self.parameters.starts.borrow().len() as u64;
        self.declare(name, shape.into(), Start { initial, stream })
    }

    /// Declares two parameters that start with the same values.
    pub fn twins(&self, names: [&str; 2], shape: impl Into<Shape>, initial: Initial) -> [Tensor<'g>; 2] {
        let (shape, stream) = (shape.into(), self.parameters.starts.borrow().len() as u64);
        names.map(|name| self.declare(name, shape.clone(), Start { initial, stream }))
    }

    /// Declares a state: a tensor of the model that no optimiser changes. A weights file must have it.
    pub fn state(&self, name: &str, shape: impl Into<Shape>, initial: Initial) -> State<'g> {
        self.drawn_state(name, shape.into(), initial, Presence::Required)
    }

    /// Declares a state that keeps its first value where a weights file lacks it.
    pub fn optional_state(&self, name: &str, shape: impl Into<Shape>, initial: Initial) -> State<'g> {
        self.drawn_state(name, shape.into(), initial, Presence::Optional)
    }

    /// Declares a table that the authors' code keeps in its weights file and that is computed here. It is written with the
    /// weights; what a file says about it is not read.
    pub fn table(&self, name: &str, shape: impl Into<Shape>, values: Vec<f32>) {
        let shape = shape.into();
        assert_eq!(values.len(), shape.count(), "table {name}: {} values do not fill shape {shape}", values.len());
        self.declare_state(name, shape, Presence::Computed, First::Given(values));
    }

    /// Facts about a training step; known when the model is applied.
    pub fn pass(&self) -> Pass<'g> {
        self.parameters.pass.clone()
    }

    fn drawn_state(&self, name: &str, shape: Shape, initial: Initial, presence: Presence) -> State<'g> {
        let stream = STATE_STREAMS + self.parameters.states.borrow().len() as u64;
        self.declare_state(name, shape, presence, First::Drawn(Start { initial, stream }))
    }

    fn declare_state(&self, name: &str, shape: Shape, presence: Presence, first: First) -> State<'g> {
        let stored = self.graph().model_state(&format!("{}{name}", self.prefix), shape.clone());
        let state = State::new(stored, shape);
        self.parameters.states.borrow_mut().push(DeclaredState { state: state.clone(), presence, first });
        state
    }

    fn declare(&self, name: &str, shape: Shape, start: Start) -> Tensor<'g> {
        self.parameters.starts.borrow_mut().push(start);
        self.parameters.graph.parameter(&format!("{}{name}", self.prefix), shape)
    }
}
