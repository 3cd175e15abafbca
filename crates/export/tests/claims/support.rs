//! What the claims share: small operators with random parameters, on every kind of task.

use lamo::inference::Physical;
use lamo::network::models::{Choice, MODELS, Row, Settings};
use lamo::network::{ModelStates, Parameters};
use lamo::task::{Field, Normaliser, Normalisers, Positions, Spread, Task, Time, Trend};
use lamo::tensor::Graph;
use lamo::{Device, Grid, Operator, Precision, Samples};

#[path = "../../../lamo/src/files/scratch.rs"]
mod scratch;
pub(crate) use scratch::Folder;

fn normaliser(channels: usize, mean: f32) -> Option<Normaliser> {
    let mean = (0..channels).map(|channel| mean + 0.3 * channel as f32).collect();
    (channels > 0).then(|| Normaliser { mean, deviation: (0..channels).map(|channel| 0.5 + channel as f32).collect() })
}

/// The task with normalisers of everything.
fn normalised(task: Task) -> Task {
    let outputs = normaliser(task.output_channels(), -1.0);
    let mut inputs = normaliser(task.input_channels(), 2.0);
    // The snapshots of a roll-out are outputs and inputs in turn.
    if let (Some(inputs), Some(Normaliser { mean, deviation }), past @ 1..) = (&mut inputs, &outputs, task.time.past())
    {
        inputs.mean.splice(..past * mean.len(), mean.repeat(past));
        inputs.deviation.splice(..past * mean.len(), deviation.repeat(past));
    }
    // All snapshots of a force that drives a roll-out have one normaliser.
    if let (Some(inputs), true) = (&mut inputs, task.driven) {
        let (first, width) = (task.time.past() * task.output_channels(), task.inputs[0].width());
        for place in first + width..first + (task.time.past() + 1) * width {
            inputs.mean[place] = inputs.mean[place - width];
            inputs.deviation[place] = inputs.deviation[place - width];
        }
    }
    let positions = normaliser(task.space, 0.5);
    let normalisers = Normalisers { positions, inputs, outputs, ..Normalisers::default() };
    Task { normalisers, ..task }
}

/// Small tasks on every kind of grid, with and without functions given, with and without a time; planes are not square.
pub(crate) fn tasks() -> Vec<Task> {
    let grids = [
        (Grid::Line { points: 9 }, 1),
        (Grid::Plane { rows: 7, columns: 5 }, 2),
        (Grid::Plane { rows: 16, columns: 4 }, 3),
        (Grid::Volume { rows: 3, columns: 5, layers: 4 }, 3),
        (Grid::Cloud { points: 11 }, 2),
        (Grid::Cloud { points: 8 }, 3),
    ];
    let plain = grids.map(|(grid, space)| [0, 2].map(|functions| Task::plain(grid, space, functions, 2)));
    let timed = |task: Task| [task.clone(), task.by_time(3)];
    plain.into_iter().flatten().flat_map(timed).map(normalised).collect()
}

/// Tasks with everything that surrounds a model: a lattice, fields of rows and samples, a trend, a clock, roll-outs.
pub(crate) fn surroundings() -> Vec<Task> {
    let grid = Grid::Plane { rows: 7, columns: 5 };
    let field = |name: &str, shape: &[usize]| Field::on(grid, name, "m", shape).unwrap();
    let lattice = Task { positions: Positions::Lattice, ..Task::plain(grid, 2, 1, 1) };
    let fields = Task {
        inputs: vec![field("a", &[7, 5]), field("wall", &[7]), field("b", &[2, 7, 5, 2]), field("speed", &[])],
        outputs: vec![
            field("u", &[3, 7, 5]),
            field("v", &[7, 5, 2]),
            Field { spread: Spread::Sample, ..field("drag", &[]) },
        ],
        ..lattice.clone()
    };
    let trend = |task: Task| {
        let task = normalised(task);
        let (features, outputs) = (task.space + task.input_channels(), task.output_channels());
        let weights = (0..=features).map(|row| (0..outputs).map(|k| 0.1 * (row + k) as f32).collect()).collect();
        let trend = Some(Trend { weights, deviation: vec![0.25; outputs] });
        Task { normalisers: Normalisers { trend, ..task.normalisers.clone() }, ..task }
    };
    let clock = vec![2.0, 2.5, 3.5, 5.0];
    let by_time = Task { time: Time::ByTime { count: 4, clock: clock.clone() }, ..lattice.clone() };
    let series = |past: usize, inputs: Vec<Field>| Task {
        outputs: vec![field("u", &[7, 5]), field("v", &[7, 5, 2])],
        time: Time::RollOut { past, snapshots: 4, clock: Vec::new() },
        inputs,
        ..lattice.clone()
    };
    let change = |task: Task| {
        let task = normalised(task);
        let change = normaliser(task.output_channels(), 0.1);
        Task { normalisers: Normalisers { change, ..task.normalisers.clone() }, ..task }
    };
    vec![
        normalised(lattice.clone()),
        normalised(fields.clone()),
        trend(fields),
        trend(by_time.clone()),
        by_time,
        normalised(series(3, vec![field("force", &[7, 5]), field("speed", &[])])),
        normalised(Task { driven: true, ..series(2, vec![field("force", &[6, 7, 5, 2]), field("speed", &[])]) }),
        change(series(1, Vec::new())),
    ]
}

pub(crate) fn row(name: &str) -> &'static Row {
    MODELS.iter().find(|row| row.name == name).unwrap()
}

/// An operator with random parameters.
pub(crate) fn operator(row: &Row, task: &Task, settings: Settings) -> Operator {
    let graph = Graph::new();
    let parameters = Parameters::new(&graph);
    row.build(&parameters, task, &settings).unwrap_or_else(|refusal| panic!("{}: {refusal}", row.name));
    let states = ModelStates {
        sections: parameters.states().into_iter().map(|(section, _)| section).collect(),
        values: parameters.draw_states(5),
    };
    Operator {
        model: Choice { name: row.name.to_owned(), settings },
        task: task.clone(),
        precision: Precision::F32,
        batch: 2,
        sections: graph.sections(),
        parameters: parameters.draw(3),
        states,
    }
}

/// Some samples, the arrays that a written model takes of each, and those that it should make.
pub(crate) struct Case {
    pub(crate) physical: Physical,
    pub(crate) samples: Samples,
    pub(crate) given: Vec<Vec<Vec<f32>>>,
    pub(crate) expected: Vec<Vec<Vec<f32>>>,
}

impl Case {
    /// Drawn samples; of a series the first predicted snapshot.
    pub(crate) fn of(operator: &Operator, count: usize) -> Case {
        Case::on(operator, operator.task.grid, count)
    }

    /// The same on another grid.
    pub(crate) fn on(operator: &Operator, grid: Grid, count: usize) -> Case {
        let graph = Graph::new();
        let physical = operator.physical(&graph, grid, 1).unwrap();
        let drawn: Vec<_> = (0..count as u64).map(|seed| physical.drawn(100 + seed)).collect();
        let samples = physical.samples(&drawn).unwrap();
        let given = (0..count).map(|sample| physical.given(&samples, sample, 0)).collect();
        let prediction = operator.predict(&samples, Device::Cpu).unwrap();
        let length = samples.grid.points() * samples.outputs;
        let first = prediction.chunks_exact(length).step_by(samples.times);
        let expected = first.map(|prediction| physical.predicted(prediction)).collect();
        Case { physical, samples, given, expected }
    }
}
