//! What a trained model does with one sample.
//!
//! - [`matrix`]: every mixing of tokens as a product with a hidden matrix, in f64, from what the layers show to a probe
//!   ([`crate::network::probe`]).
//! - [`Explained`]: a block's matrices by head and direction, how concentrated they are, how alike its tokens are, and where they
//!   lie ([`Domain`]).
//! - [`derivatives`]: the influence of the inputs on one output.
//! - [`Regions`]: errors and influences by region.
//!
//! The program is that of a prediction, with further outputs.

mod influence;
mod layer;
pub mod matrix;
mod region;
mod tokens;
mod values;

pub use influence::{ASKED, Derivatives, Influence, derivatives};
pub use layer::{ALL_ROWS, Explained, HeadMatrices, Matrix, SIDE};
pub use region::Regions;
pub use tokens::{Domain, cosine};
pub use values::{by_matrices, evaluated};

use super::predictor::{PREDICTION, write_inputs};
use crate::data::Samples;
use crate::error::{Error, Kind, Refusal, bounded, require};
use crate::network::probe::Layer;
use crate::network::{ModelStates, Parameters, models};
use crate::run::Operator;
use crate::task::Task;
use lamo_geometry::Grid;
use lamo_tensor::reference::Array;
use lamo_tensor::{Device, Graph, Program, Shape};

/// A compiled forward pass that shows its blocks, and the derivatives of one output.
pub struct Explainer {
    program: Program,
    task: Task,
    grid: Grid,
    layers: Vec<Layer<(String, Shape)>>,
    derivatives: bool,
}

/// What the model does with one sample at one time.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// `[points, outputs]` the prediction in physical units
    pub prediction: Vec<f32>,
    /// The blocks; none for a model without a mixer over tokens.
    pub layers: Vec<Explained>,
    /// What the asked output depends on.
    pub influence: Influence,
}

/// Matrices and numbers of one sample without the places of its tokens; matrices have at most `side` rows.
pub fn summarise(shown: &[Layer<Array>], grid: Grid, side: usize) -> Vec<Explained> {
    shown.iter().filter_map(|layer| layer::explain(layer, 0, grid, None, side)).collect()
}

/// Names of the outputs that hold derivatives.
const SLOPES: [&str; 2] = ["slope of positions", "slope of functions"];

impl Operator {
    /// The model with the parameters that a training with this seed begins from.
    pub fn at_start(&self, seed: u64) -> Result<Operator, Error> {
        let graph = Graph::new();
        let parameters = Parameters::new(&graph);
        models::find(&self.model.name)?.build(&parameters, &self.task, &self.model.settings)?;
        let states = ModelStates { values: parameters.draw_states(seed), ..self.states.clone() };
        Ok(Operator { parameters: parameters.draw(seed), states, ..self.clone() })
    }

    /// A forward pass for one sample at a time; with `derivatives`, also the influence of the inputs.
    pub fn explainer(&self, device: Device, grid: Grid, derivatives: bool) -> Result<Explainer, Error> {
        self.check()?;
        self.check_grid(grid)?;
        bounded(|| {
            let graph = Graph::new();
            let parameters = Parameters::new(&graph);
            let probe = parameters.probe(false);
            let applied = self.apply(&graph, &parameters, grid, 1, false)?;
            graph.output(PREDICTION, applied.prediction);
            let layers = values::output(&graph, &probe.layers());
            if derivatives {
                let found = influence::derivatives(&graph, applied.prediction, &applied.input);
                graph.output(SLOPES[0], found.positions);
                found.functions.iter().for_each(|slope| graph.output(SLOPES[1], *slope));
            }
            let program = self.compile(&graph, &parameters, device)?;
            Ok(Explainer { program, task: self.task.on(grid), grid, layers, derivatives })
        })
    }
}

impl Explainer {
    /// The time of a sample that is explained: the first step of a roll-out, the last time of a model that is given a time.
    pub fn time(&self) -> usize {
        if self.task.time.is_input() { self.task.time.count().saturating_sub(1) } else { 0 }
    }

    /// Runs one sample.
    fn run(&mut self, samples: &Samples, sample: usize) -> Result<(), Error> {
        write_inputs(&mut self.program, &self.task, samples, &[sample])?;
        if self.task.time.is_input() {
            self.program.try_write("time", &[self.task.time.fraction(self.time())])?;
        }
        Ok(self.program.try_run()?)
    }

    /// What the blocks show of one sample.
    pub fn shown(&mut self, samples: &Samples, sample: usize) -> Result<Vec<Layer<Array>>, Error> {
        samples.check_for(&self.task)?;
        require(sample < samples.count, || {
            let most = samples.count.saturating_sub(1);
            Refusal::new("sample", format!("a number from 0 to {most}"), sample.to_string()).of(Kind::Missing)
        })?;
        self.run(samples, sample)?;
        Ok(values::read(&self.program, &self.layers)?)
    }

    /// Explains one sample. The influence is that on output channel `channel` at `point`.
    pub fn explain(&mut self, samples: &Samples, sample: usize, asked: [usize; 2]) -> Result<Explanation, Error> {
        let ([point, channel], points, outputs) = (asked, self.grid.points(), self.task.output_channels());
        for (name, found, extent) in [("point", point, points), ("channel", channel, outputs)] {
            require(found < extent, || {
                Refusal::new(name, format!("a number from 0 to {}", extent - 1), found.to_string()).of(Kind::Missing)
            })?;
        }
        require(self.derivatives, || Refusal::said("this explainer was made without derivatives"))?;
        let mut wanted = vec![0.0; points * outputs];
        wanted[point * outputs + channel] = 1.0;
        self.program.try_write(ASKED, &wanted)?;
        let shown = self.shown(samples, sample)?;
        let layers = shown.iter().filter_map(|layer| layer::explain(layer, 0, self.grid, Some(point), SIDE)).collect();
        let (of, name, normaliser, channels) = match self.task.input_channels() {
            0 => ("positions", SLOPES[0], &self.task.normalisers.positions, self.task.space),
            functions => ("functions", SLOPES[1], &self.task.normalisers.inputs, functions),
        };
        let deviation = normaliser.as_ref().map_or(&[][..], |normaliser| &normaliser.deviation);
        let influence = Influence::new(asked, of, self.program.try_read(name)?, deviation, channels);
        Ok(Explanation { prediction: self.program.try_read(PREDICTION)?.to_vec(), layers, influence })
    }
}
