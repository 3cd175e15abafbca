//! The claims of the `lamo` command, in one test program.

mod bench;
#[cfg(target_os = "linux")]
#[path = "../../../lamo/tests/claims/bombs.rs"]
mod bombs; // crafted files
mod check; // lamo data check
mod commands; // lamo list, lamo parity, help, exit codes
mod compare;
#[cfg(target_os = "linux")]
mod crafted; // crafted files, pipes and names; `ulimit -v` and `timeout`
mod errors; // the error line of --json, the kind of each failure
mod evaluate;
mod explain;
mod extremes; // settings beyond reason in little memory
mod import; // lamo data import
mod make; // lamo data make
mod measures; // validation, outputs in their units, predictors that learn nothing, keys
mod meshes; // folders of mesh files: cells, some points, pieces
mod numbers; // outputs that are numbers of the whole sample
mod own_data; // your own data: train, predict, evaluate
mod paper; // lamo paper: the smoke grid
mod predict;
mod ragged; // samples with different numbers of points
mod results;
mod run; // lamo run pack, unpack and shrink
mod serve;
mod support;
mod train;
mod volumes; // regular grids of three axes
mod weights; // lamo import, lamo export-weights
