//! Claims about lamo-tensor, one module per subject.

mod assignments; // states that are assigned, and values that gradients compare
mod blocks; // kernels that run block by block
mod cholesky; // inverse Cholesky factors and their guard
mod determinism; // same bits for any number of threads and from run to run
mod dropout; // random numbers by a counter: distribution, gradient, memory
mod limits; // sizes that no machine has, and compilations that are stopped
mod operators; // every operator: CPU equals reference, gradient equals finite differences
mod programs; // states, assignments, shapes, errors, memory
mod random_graphs; // fused equals unfused equals reference on random graphs
mod support; // random values, comparison
