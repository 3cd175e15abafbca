//! The forward pass in physical units, as a graph: the fields of a data set in, the fields of a prediction out.
//!
//! A translator writes this graph in another language, so everything is inside: positions on a lattice are constants, inputs are
//! normalised, the trend and the last snapshot are added, outputs get their units. A roll-out is one step: the past snapshots in,
//! the next one out. With time as an input, one time of each sample is asked for.

use super::predictor::elsewhere;
use crate::data::Samples;
use crate::error::{Error, Refusal, bounded, require};
use crate::network::models;
use crate::network::{Input, Mode, Parameters};
use crate::random::words;
use crate::run::Operator;
use crate::task::{Field, Normaliser, Spread, Task};
use lamo_geometry::Grid;
use lamo_tensor::{Graph, Section, Tensor};

/// What an array of the graph holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Positions of the points.
    Positions,
    /// A field that is given.
    Given,
    /// The time that is asked for, one number for each sample.
    Time,
    /// A field that is predicted.
    Predicted,
}

/// One array that the graph takes or makes, `[batch, ...shape]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Name in the graph: that of the field, or `positions`, or `time`.
    pub name: String,
    /// Unit of its values.
    pub unit: String,
    /// What it holds.
    pub role: Role,
    /// Shape of one sample.
    pub shape: Vec<usize>,
    spread: Spread,
    snapshots: usize,
    width: usize,
    /// Its first function among those of a point, and the functions from one snapshot to the next.
    first: usize,
    stride: usize,
}

/// A graph in physical units.
#[derive(Clone, Debug)]
pub struct Physical {
    /// The task on the grid of the graph.
    pub task: Task,
    /// The graph's inputs.
    pub inputs: Vec<Port>,
    /// The graph's outputs.
    pub outputs: Vec<Port>,
    /// θ, the value of the graph's state [`PARAMETERS`](lamo_tensor::PARAMETERS).
    pub parameters: Vec<f32>,
    /// The value of the graph's state [`MODEL_STATES`](lamo_tensor::MODEL_STATES); empty where it has none.
    pub states: Vec<f32>,
}

impl Operator {
    /// Builds the forward pass for batches of `batch` samples on a grid, which may differ from the training grid where the model
    /// allows it.
    pub fn physical(&self, graph: &Graph, grid: Grid, batch: usize) -> Result<Physical, Error> {
        self.check()?;
        self.check_grid(grid)?;
        bounded(|| self.declare_physical(graph, grid, batch))
    }

    fn declare_physical(&self, graph: &Graph, grid: Grid, batch: usize) -> Result<Physical, Error> {
        let task = self.task.on(grid);
        let parameters = Parameters::new(graph);
        let model = models::find(&self.model.name)?.build(&parameters, &task, &self.settings_on(grid)?)?;
        let (inputs, outputs) = (input_ports(&task), output_ports(&task)?);
        let input = declare(graph, &task, &inputs, batch)?;
        let found = task.found(model.forward(&input, Mode::Inference), input.positions, input.functions);
        let prediction = task.decoded(found, None);
        for port in &outputs {
            graph.output(&port.name, port.cut(prediction));
        }
        require(graph.sections() == self.sections, || elsewhere(&self.model.name, self.task.grid, grid))?;
        let sections: Vec<Section> = graph.state_sections();
        let states =
            if parameters.has_states() { self.states_for(&sections, parameters.draw_states(0)) } else { Vec::new() };
        Ok(Physical { task, inputs, outputs, parameters: self.parameters.clone(), states })
    }
}

/// The field of the window of a roll-out, and those beside it; the other tasks have the latter alone.
fn input_ports(task: &Task) -> Vec<Port> {
    let mut ports = Vec::new();
    if task.needs_positions() {
        let field = Field { channels: Some(task.space), ..Field::plain("positions", 1) };
        ports.push(Port::of(task.grid, &field, Role::Positions, [0, 0]));
    }
    let (past, window) = (task.time.past(), task.outputs.iter().map(Field::width).sum::<usize>());
    let mut first = 0;
    for field in task.outputs.iter().filter(|_| past > 0) {
        let given = Field { snapshots: Some(past), ..field.clone() };
        ports.push(Port::of(task.grid, &given, Role::Given, [first, window]));
        first += field.width();
    }
    first = past * window;
    for field in &task.inputs {
        let snapshots = if task.is_driven_by(field) { Some(past + 1) } else { field.snapshots };
        let shown = Field { snapshots, ..field.clone() };
        ports.push(Port::of(task.grid, &shown, Role::Given, [first, field.width()]));
        first += shown.functions();
    }
    if task.time.is_input() {
        let field = Field { spread: Spread::Sample, ..Field::plain("time", 1) };
        ports.push(Port::of(task.grid, &field, Role::Time, [0, 0]));
    }
    name_apart(&mut ports, &[]);
    ports
}

fn output_ports(task: &Task) -> Result<Vec<Port>, Refusal> {
    let series = task.time.is_series();
    let mut ports = Vec::new();
    for (field, range) in task.outputs.iter().zip(task.output_ranges()) {
        let rows = field.spread == Spread::Rows;
        let looped = field.spread == Spread::Sample && task.time.mode().is_roll_out();
        require(!rows && !looped, || {
            let found = if rows { "a value for each row" } else { "a number of the whole sample in a roll-out" };
            Refusal::new(format!("output `{}`", field.name), "a value at every point", found)
        })?;
        let asked = if series { Field { snapshots: None, ..field.clone() } } else { field.clone() };
        ports.push(Port::of(task.grid, &asked, Role::Predicted, [range.start, field.width()]));
    }
    let taken: Vec<String> = input_ports(task).into_iter().map(|port| port.name).collect();
    name_apart(&mut ports, &taken);
    Ok(ports)
}

/// Gives each port a name of its own: the next snapshot of `u` is `u_next`.
fn name_apart(ports: &mut [Port], taken: &[String]) {
    let mut taken = taken.to_vec();
    for port in ports {
        let ending = if port.role == Role::Predicted { "_next" } else { "_given" };
        while taken.contains(&port.name) {
            port.name.push_str(ending);
        }
        taken.push(port.name.clone());
    }
}

/// The inputs as the model sees them.
fn declare<'g>(graph: &'g Graph, task: &Task, ports: &[Port], batch: usize) -> Result<Input<'g>, Refusal> {
    let points = task.grid.points();
    let declared = |port: &Port| {
        let dims: Vec<usize> = std::iter::once(batch).chain(port.shape.iter().copied()).collect();
        graph.input(&port.name, dims)
    };
    let of = |role: Role| ports.iter().filter(move |port| port.role == role);
    let positions = match of(Role::Positions).next() {
        Some(port) => encoded(task.normalisers.positions.as_ref(), declared(port).reshape([batch, points, task.space])),
        None => {
            let lattice = task.encode_positions(&task.lattice(task.grid)?);
            graph.constant(&lattice, [1, points, task.space]).broadcast_to([batch, points, task.space])
        }
    };
    let past = task.time.past();
    let given: Vec<(&Port, Tensor<'g>)> = // [batch, snapshots, points, width]
        of(Role::Given).map(|port| (port, port.spread_out(declared(port), batch, task.grid))).collect();
    let width: usize = task.outputs.iter().map(Field::width).sum();
    let is_past = |port: &Port| past > 0 && port.first < width;
    let window: Vec<Tensor<'g>> = given.iter().filter(|(port, _)| is_past(port)).map(|(_, values)| *values).collect();
    let others = given.iter().filter(|(port, _)| !is_past(port)).map(|(_, values)| *values);
    let window = (!window.is_empty()).then(|| Tensor::concatenate(&window, 3));
    let functions: Vec<Tensor<'g>> = window.into_iter().chain(others).map(stacked).collect();
    let functions = (!functions.is_empty()).then(|| Tensor::concatenate(&functions, 2));
    let functions = functions.map(|functions| encoded(task.normalisers.inputs.as_ref(), functions));
    let time = of(Role::Time).next().map(|port| fraction(task, declared(port).reshape([batch, 1])));
    Ok(Input { positions, functions, time, mask: None })
}

/// (v − μ) / σ
fn encoded<'g>(normaliser: Option<&Normaliser>, values: Tensor<'g>) -> Tensor<'g> {
    let Some(Normaliser { mean, deviation }) = normaliser else { return values };
    let constant = |numbers: &[f32]| values.graph().constant(numbers, [numbers.len()]);
    (values - constant(mean)) / constant(deviation)
}

/// A time as a fraction of the series; where the times are unknown, it is given as a fraction.
fn fraction<'g>(task: &Task, time: Tensor<'g>) -> Tensor<'g> {
    let clock = task.time.clock();
    match (clock.first(), clock.last()) {
        (Some(first), Some(last)) if first < last => (time - *first) * (1.0 / (last - first)),
        _ => time,
    }
}

/// `[batch, snapshots, points, width]` → `[batch, points, snapshots · width]`
fn stacked(values: Tensor<'_>) -> Tensor<'_> {
    let [batch, snapshots, points, width] = values.dims();
    values.permute(&[0, 2, 1, 3]).reshape([batch, points, snapshots * width])
}

impl Port {
    fn of(grid: Grid, field: &Field, role: Role, [first, stride]: [usize; 2]) -> Port {
        Port {
            name: field.name.clone(),
            unit: field.unit.clone(),
            role,
            shape: field.shape(grid),
            spread: field.spread,
            snapshots: field.length(),
            width: field.width(),
            first,
            stride,
        }
    }

    /// `[batch, snapshots, points, width]`: one value for each point.
    fn spread_out<'g>(&self, values: Tensor<'g>, batch: usize, grid: Grid) -> Tensor<'g> {
        let (snapshots, points, width) = (self.snapshots, grid.points(), self.width);
        let all = [batch, snapshots, points, width];
        match self.spread {
            Spread::Points => values.reshape(all),
            Spread::Sample => values.reshape([batch, snapshots, 1, width]).broadcast_to(all),
            Spread::Rows => {
                let rows = grid.shape()[0];
                let each = values.reshape([batch, snapshots, rows, 1, width]);
                each.broadcast_to([batch, snapshots, rows, points / rows, width]).reshape(all)
            }
        }
    }

    /// The field of this port out of a prediction `[batch, points, outputs]`.
    fn cut<'g>(&self, prediction: Tensor<'g>) -> Tensor<'g> {
        let [batch, points, _] = prediction.dims();
        let functions = prediction.slice(2, self.first, self.first + self.snapshots * self.width);
        let dims: Vec<usize> = std::iter::once(batch).chain(self.shape.iter().copied()).collect();
        let (functions, points) = match self.spread {
            Spread::Sample => (functions.slice(1, 0, 1), 1), // the same at all points
            Spread::Points | Spread::Rows => (functions, points),
        };
        functions.reshape([batch, points, self.snapshots, self.width]).permute(&[0, 2, 1, 3]).reshape(dims)
    }

    /// Values of this port from values `[points, functions]` of one sample.
    fn values(&self, grid: Grid, rows: &[f32]) -> Vec<f32> {
        let points = grid.points();
        let functions = rows.len() / points;
        let places: Vec<usize> = match self.spread {
            Spread::Points => (0..points).collect(),
            Spread::Rows => (0..grid.shape()[0]).map(|row| row * points / grid.shape()[0]).collect(),
            Spread::Sample => vec![0],
        };
        let mut values = Vec::with_capacity(self.shape.iter().product());
        for snapshot in 0..self.snapshots {
            for place in &places {
                let start = place * functions + self.first + snapshot * self.stride;
                values.extend_from_slice(&rows[start..start + self.width]);
            }
        }
        values
    }
}

impl Port {
    /// Writes values of this port to all points of `[points, functions]`.
    fn fill(&self, grid: Grid, rows: &mut [f32], values: &[f32]) {
        let points = grid.points();
        let functions = rows.len() / points;
        let inner = values.len() / (self.snapshots * self.width);
        for snapshot in 0..self.snapshots {
            for point in 0..points {
                let start = point * functions + self.first + snapshot * self.stride;
                let from = (snapshot * inner + point * inner / points) * self.width;
                rows[start..start + self.width].copy_from_slice(&values[from..from + self.width]);
            }
        }
    }
}

impl Physical {
    /// The arrays of one sample that the graph takes, in the order of `inputs`; `time` is the number of the time that is asked for.
    /// The past snapshots of a roll-out are those at its start.
    pub fn given(&self, samples: &Samples, sample: usize, time: usize) -> Vec<Vec<f32>> {
        let functions = self.task.shown(samples.input_of(sample), samples.functions, time);
        let port = |port: &Port| match port.role {
            Role::Positions => samples.positions_of(sample).to_vec(),
            Role::Time => vec![self.time(time)],
            Role::Given | Role::Predicted => port.values(samples.grid, &functions),
        };
        self.inputs.iter().map(port).collect()
    }

    /// The time with a number, as the graph takes it.
    pub fn time(&self, number: usize) -> f32 {
        let clock = self.task.time.clock();
        let known = clock.first() < clock.last();
        clock.get(number).filter(|_| known).map_or(self.task.time.fraction(number), |time| *time as f32)
    }

    /// The arrays of one sample that the graph makes, in the order of `outputs`, from its prediction `[points, outputs]`.
    pub fn predicted(&self, prediction: &[f32]) -> Vec<Vec<f32>> {
        self.outputs.iter().map(|port| port.values(self.task.grid, prediction)).collect()
    }

    /// Samples from the arrays that the graph takes, one list for each sample: the inverse of [`Physical::given`].
    pub fn samples(&self, given: &[Vec<Vec<f32>>]) -> Result<Samples, Refusal> {
        let (task, points, functions) = (&self.task, self.task.grid.points(), self.task.input_channels());
        let (mut positions, mut inputs) = (Vec::new(), vec![0.0; given.len() * points * functions]);
        for (arrays, rows) in given.iter().zip(inputs.chunks_exact_mut((points * functions).max(1))) {
            for (port, values) in self.inputs.iter().zip(arrays).filter(|(port, _)| port.role == Role::Given) {
                port.fill(task.grid, rows, values);
            }
        }
        for arrays in given {
            let own = self.inputs.iter().zip(arrays).find(|(port, _)| port.role == Role::Positions);
            own.iter().for_each(|(_, values)| positions.extend_from_slice(values));
        }
        let times = task.time.count();
        Ok(Samples {
            count: given.len(),
            grid: task.grid,
            offsets: Vec::new(),
            space: task.space,
            positions: if positions.is_empty() { task.lattice(task.grid)? } else { positions },
            functions: task.given_channels(times),
            inputs: if task.driving() > 0 { task.held(&inputs, times) } else { inputs },
            times,
            outputs: task.output_channels(),
            targets: Vec::new(),
        })
    }

    /// The arrays of a sample that never was: numbers with the mean and the deviation of the training samples, where the
    /// normalisers know them.
    pub fn drawn(&self, seed: u64) -> Vec<Vec<f32>> {
        let normalisers = &self.task.normalisers;
        let draw = |(place, port): (usize, &Port)| {
            let count: usize = port.shape.iter().product();
            let numbers = (0..count.div_ceil(DRAWN) as u64).flat_map(|block| {
                let quarters: [f32; 4 * DRAWN] = words(seed, (place as u64) << 32 | block);
                quarters
                    .as_chunks::<4>()
                    .0
                    .iter()
                    .map(|four| four.iter().sum::<f32>() / 16_777_216.0)
                    .collect::<Vec<f32>>()
            });
            let scaled = |(index, sum): (usize, f32)| {
                let channel = index % port.width;
                let normal = |normaliser: &Normaliser, channel: usize| {
                    normaliser.mean[channel] + normaliser.deviation[channel] * (sum - 2.0) * 3_f32.sqrt()
                };
                match (port.role, &normalisers.positions, &normalisers.inputs) {
                    (Role::Positions, Some(normaliser), _) => normal(normaliser, channel),
                    (Role::Given, _, Some(normaliser)) => normal(normaliser, port.first + channel),
                    (Role::Given, ..) => (sum - 2.0) * 3_f32.sqrt(),
                    _ => sum / 4.0,
                }
            };
            numbers.take(count).enumerate().map(scaled).collect()
        };
        self.inputs.iter().enumerate().map(draw).collect()
    }
}

/// Numbers that are drawn at once.
const DRAWN: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Time;

    /// Fields with one value for each point, row or sample, in a steady task and in a series that is continued.
    #[test]
    fn drawn_arrays_become_samples_and_samples_become_the_arrays() {
        let grid = Grid::Plane { rows: 3, columns: 2 };
        let on = |name: &str, shape: &[usize]| Field::on(grid, name, "1", shape).unwrap();
        let inputs = vec![on("a", &[3, 2]), on("r", &[3]), on("b", &[2, 3, 2, 2]), on("c", &[3])];
        for time in [Time::Steady, Time::RollOut { past: 2, snapshots: 3, clock: Vec::new() }] {
            let outputs = vec![on("u", &[3, 2]), on("v", &[3, 2, 2])];
            let task = Task { inputs: inputs.clone(), outputs, time, ..Task::plain(grid, 2, 1, 3) };
            let (inputs, outputs) = (input_ports(&task), output_ports(&task).unwrap());
            let physical = Physical { task, inputs, outputs, parameters: Vec::new(), states: Vec::new() };
            let drawn = [physical.drawn(1), physical.drawn(2)];
            assert_ne!(drawn[0], drawn[1]);
            let samples = physical.samples(&drawn).unwrap();
            samples.check_for(&physical.task).unwrap();
            for (sample, drawn) in drawn.iter().enumerate() {
                assert_eq!(&physical.given(&samples, sample, 0), drawn);
            }
        }
    }

    #[test]
    fn the_next_snapshot_has_a_name_of_its_own() {
        let grid = Grid::Line { points: 4 };
        let time = Time::RollOut { past: 1, snapshots: 1, clock: Vec::new() };
        let task = Task { inputs: Vec::new(), time, ..Task::plain(grid, 1, 0, 1) };
        assert_eq!(input_ports(&task).last().unwrap().name, "outputs");
        assert_eq!(output_ports(&task).unwrap()[0].name, "outputs_next");
    }
}
