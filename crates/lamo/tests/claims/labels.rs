//! The error of the labels: what is measured, on any number of threads, and what cannot be measured.

use crate::support::Folder;
use lamo::data::{Convergence, LabelError};
use lamo::workflow::{self, Cancel, MakeRequest, Session};
use lamo::{Error, Kind};

/// Some samples of a problem with these settings, solved finer on some threads.
fn converged(problem: &str, changes: &[&str], threads: usize) -> Convergence {
    let folder = Folder::new(&format!("labels-{problem}-{threads}"));
    let out = folder.at("data");
    let changes = changes.iter().map(|&change| change.to_owned()).collect();
    let request = MakeRequest { problem: problem.to_owned(), changes, seed: 1, samples: 5, out: out.clone() };
    workflow::make(&request, &Session::default()).unwrap();
    workflow::converge(&out, 3, &Session { threads, ..Session::default() }).unwrap()
}

#[test]
fn displacements_are_judged_beside_the_positions_that_hide_their_error() {
    let found = converged("plasticity", &["resolution=1", "frames=4"], 2);
    assert_eq!(found.numbers, [0, 1, 3]);
    let [deformation, displacement] = found.quantities.as_slice() else { panic!("{found:?}") };
    assert_eq!([deformation, displacement].map(|error| error.quantity.as_str()), ["deformation", "displacement"]);
    assert!(displacement.mean() > 10.0 * deformation.mean(), "{displacement:?} {deformation:?}");
    for LabelError { samples, snapshots, .. } in &found.quantities {
        assert_eq!((samples.len(), snapshots.len()), (3, 4));
        assert_eq!(snapshots[0], snapshots[0].min(1e-6), "the first snapshot is not deformed"); // rounded to float32
        assert!(snapshots[1..].iter().all(|&error| error > 1e-6 && error.is_finite()), "{snapshots:?}");
    }
}

#[test]
fn the_error_does_not_depend_on_the_number_of_threads() {
    let [one, many] = [1, 4].map(|threads| converged("darcy", &["resolution=8"], threads));
    assert_eq!(one, many);
    assert!(one.quantities[0].snapshots.is_empty(), "Darcy has no time");
}

#[test]
fn measuring_can_be_stopped() {
    let folder = Folder::new("labels-stopped");
    let (problem, changes, out) = ("darcy".to_owned(), vec!["resolution=8".to_owned()], folder.at("data"));
    workflow::make(&MakeRequest { problem, changes, seed: 1, samples: 2, out: out.clone() }, &Session::default())
        .unwrap();
    let cancel = Cancel::new();
    cancel.cancel();
    let stopped = workflow::converge(&out, 2, &Session { cancel, ..Session::default() });
    assert_eq!(stopped.as_ref().map_err(Error::kind).unwrap_err(), Kind::Cancelled, "{stopped:?}");
}
