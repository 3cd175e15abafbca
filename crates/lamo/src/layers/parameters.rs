//! Parameters: names as in a weights file, and how each is drawn before training.

use lamo_tensor::{Graph, Program, Section, Shape, Tensor};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;
use std::cell::RefCell;

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
}

impl Initial {
    /// U(±1/√fan_in), the default of PyTorch's linear and convolution layers.
    pub fn fan_in(inputs: usize) -> Initial {
        let bound = 1.0 / (inputs as f64).sqrt();
        Initial::Uniform { low: -bound, high: bound }
    }

    fn draw(self, random: &mut impl Rng) -> f64 {
        match self {
            Initial::Constant(value) => value,
            Initial::Uniform { low, high } => low + (high - low) * random.random::<f64>(),
            Initial::Normal { deviation } => {
                // Box–Muller; 1 − u lies in (0, 1], where the logarithm is finite.
                let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
                deviation * radius * (std::f64::consts::TAU * random.random::<f64>()).cos()
            }
        }
    }
}

/// All parameters of a model under construction.
pub struct Parameters<'g> {
    graph: &'g Graph,
    initial: RefCell<Vec<Initial>>,
}

impl<'g> Parameters<'g> {
    /// Declares parameters in `graph`, which has none yet.
    pub fn new(graph: &'g Graph) -> Self {
        assert!(graph.sections().is_empty(), "the graph has parameters already");
        Parameters { graph, initial: RefCell::default() }
    }

    /// The outermost scope.
    pub fn root(&self) -> Scope<'_, 'g> {
        Scope { parameters: self, prefix: String::new() }
    }

    /// Draws all parameters anew. Each has its own stream of random numbers, so its values depend on `seed` and on its
    /// position alone.
    pub fn initialise(&self, program: &mut Program, seed: u64) {
        let sections: Vec<Section> = program.sections().to_vec();
        for (position, (section, initial)) in sections.iter().zip(self.initial.borrow().iter()).enumerate() {
            let mut random = ChaCha12Rng::seed_from_u64(seed);
            random.set_stream(position as u64);
            let values: Vec<f32> = (0..section.shape.count()).map(|_| initial.draw(&mut random) as f32).collect();
            program.write_parameter(&section.name, &values);
        }
    }
}

/// A place in the tree of parameter names.
#[derive(Clone)]
pub struct Scope<'a, 'g> {
    parameters: &'a Parameters<'g>,
    prefix: String,
}

impl<'a, 'g> Scope<'a, 'g> {
    /// The scope `name` inside this one.
    pub fn enter(&self, name: &str) -> Scope<'a, 'g> {
        Scope { parameters: self.parameters, prefix: format!("{}{name}.", self.prefix) }
    }

    /// Declares a parameter.
    pub fn parameter(&self, name: &str, shape: impl Into<Shape>, initial: Initial) -> Tensor<'g> {
        self.parameters.initial.borrow_mut().push(initial);
        self.parameters.graph.parameter(&format!("{}{name}", self.prefix), shape)
    }
}
