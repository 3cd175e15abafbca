//! Which flow a prediction shows where the flow through a pipe is not unique.
//!
//! `cargo run --release -p lamo --example pipe_solutions -- DATA PREDICTION`
//!
//! `DATA` is a data set of Pipe with `canonical=true`. `PREDICTION` is what `lamo predict` makes of the positions of its last samples.
//! For each sample with an error above 0.02, Newton's method solves the discrete equations of the label from other starts: from
//! the flow with a do-nothing outlet, from a falling viscosity, and from the flows through the six nearest pipes of the data set. Each line has the distances of the flow that it
//! finds from the label and from the prediction, as relative L2 of u_x.
#![allow(clippy::print_stdout)]

use lamo::data::formats::read;
use lamo_physics::mesh::Mesh;
use lamo_physics::problems::pipe::{is_prescribed, start};
use lamo_physics::taylor_hood::{Flow, Outlet, TaylorHood};
use std::error::Error;
use std::path::Path;

const VISCOSITY: f64 = 0.005;
const BAD: f64 = 0.02;
const NEIGHBOURS: usize = 6;

/// Arrays of a data set, `[samples, nodes]` each, and a prediction of its last samples.
struct Pipes {
    mesh: Mesh,
    positions: Vec<f64>,
    velocity: [Vec<f64>; 2],
    pressure: Vec<f64>,
    prediction: Vec<f64>,
}

impl Pipes {
    fn read(data: &Path, prediction: &Path) -> Result<Self, Box<dyn Error>> {
        let field = |name: &str| read(data.join(name).with_extension("npy"), None);
        let along = field("velocity_x")?;
        let [_, rows, columns] = along.shape[..] else {
            return Err(format!("velocity_x: expected [samples, rows, columns], found {:?}", along.shape).into());
        };
        Ok(Pipes {
            mesh: Mesh { rows: rows / 2, columns: columns / 2, ring: false },
            positions: field("positions")?.values.into_f64(),
            velocity: [along.values.into_f64(), field("velocity_y")?.values.into_f64()],
            pressure: field("pressure")?.values.into_f64(),
            prediction: read(prediction, None)?.values.into_f64(),
        })
    }

    fn count(&self) -> usize {
        self.pressure.len() / self.mesh.nodes()
    }

    /// Values of one sample.
    fn of<'a>(&self, values: &'a [f64], sample: usize) -> &'a [f64] {
        let length = values.len() / self.count();
        &values[sample * length..][..length]
    }

    fn nodes(&self, sample: usize) -> Vec<[f64; 2]> {
        self.of(&self.positions, sample).chunks_exact(2).map(|point| [point[0], point[1]]).collect()
    }

    /// The label as a flow; its pressure is bilinear, so that it is known by its vertices.
    fn flow(&self, sample: usize) -> Flow {
        let [along, across] = [0, 1].map(|axis| self.of(&self.velocity[axis], sample));
        let (mesh, pressure) = (self.mesh, self.of(&self.pressure, sample));
        let vertices =
            (0..=mesh.rows).flat_map(|row| (0..=mesh.columns).map(move |column| mesh.node(2 * row, 2 * column)));
        Flow {
            velocity: along.iter().zip(across).map(|(along, across)| [*along, *across]).collect(),
            pressure: vertices.map(|node| pressure[node]).collect(),
        }
    }

    /// The samples whose pipes are nearest, in the mean square of the distances of their nodes.
    fn nearest(&self, sample: usize) -> Vec<usize> {
        let own = self.of(&self.positions, sample);
        let apart = |other: usize| distance(self.of(&self.positions, other), own);
        let mut others: Vec<(f64, usize)> =
            (0..self.count()).filter(|other| *other != sample).map(|other| (apart(other), other)).collect();
        others.sort_by(|one, two| one.0.total_cmp(&two.0));
        others.into_iter().take(NEIGHBOURS).map(|(_, other)| other).collect()
    }
}

/// ‖found − wanted‖ / ‖wanted‖
fn distance(found: &[f64], wanted: &[f64]) -> f64 {
    let miss: f64 = found.iter().zip(wanted).map(|(found, wanted)| (found - wanted).powi(2)).sum();
    (miss / wanted.iter().map(|value| value * value).sum::<f64>()).sqrt()
}

fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let [data, prediction] = &given[..] else {
        return Err("expected the folder of a data set and a file with predictions of its last samples".into());
    };
    let pipes = Pipes::read(data.as_ref(), prediction.as_ref())?;
    let (mesh, length) = (pipes.mesh, pipes.mesh.nodes());
    let system = |outlet| TaylorHood::new(mesh, |node| is_prescribed(mesh, node), outlet);
    let (free, plain) = (system(Outlet::Free)?, system(Outlet::DoNothing)?);
    let first = pipes.count() - pipes.prediction.len() / length;
    for (predicted, sample) in pipes.prediction.chunks_exact(length).zip(first..) {
        let (label, nodes) = (pipes.of(&pipes.velocity[0], sample), pipes.nodes(sample));
        let error = distance(predicted, label);
        if error < BAD {
            continue;
        }
        println!("sample {sample}: error of the prediction {error:.4}");
        let do_nothing = plain.solve(VISCOSITY, &nodes, |_| [0.0; 2], start(mesh));
        let rest = Ok(start(mesh));
        let thick = [4.0, 2.0, std::f64::consts::SQRT_2].into_iter().fold(rest, |flow, factor| {
            flow.and_then(|flow| free.solve(factor * VISCOSITY, &nodes, |_| [0.0; 2], flow))
        });
        let known = [("do-nothing".to_owned(), do_nothing), ("a falling viscosity".to_owned(), thick)];
        let near = pipes.nearest(sample).into_iter().map(|other| (format!("sample {other}"), Ok(pipes.flow(other))));
        for (from, guess) in known.into_iter().chain(near) {
            let Ok(flow) = guess.and_then(|guess| free.solve(VISCOSITY, &nodes, |_| [0.0; 2], guess)) else {
                println!("  from {from}: no solution");
                continue;
            };
            let along: Vec<f64> = flow.velocity.iter().map(|velocity| velocity[0]).collect();
            let [to_label, to_prediction] = [label, predicted].map(|other| distance(&along, other));
            println!("  from {from}: {to_label:.4} from the label, {to_prediction:.4} from the prediction");
        }
    }
    Ok(())
}
