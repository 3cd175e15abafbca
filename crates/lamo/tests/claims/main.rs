//! What lamo claims, one module per subject.

mod fixture; // reading fixtures, comparing with them
mod operators; // scans, norms, maps and the grid mixer equal the authors' code
mod optimisation; // loss, optimiser and schedules equal PyTorch's
mod training; // a whole step as one program learns
