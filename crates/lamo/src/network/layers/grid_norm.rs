//! Norms of fields on a grid, each channel by itself: (x − mean)/√(variance + 10⁻⁵) · weight + bias.
//!
//! Batch norm (Ioffe & Szegedy 2015) takes mean and variance over the batch and the grid. In training it also moves its running
//! statistics by a tenth towards them, which it uses for predictions. Instance norm (Ulyanov et al. 2016) takes them over the
//! grid of each sample, always.

use crate::network::{Initial, Mode, Pass, Scope, State};
use lamo_tensor::Tensor;

const EPSILON: f64 = 1e-5;
/// Share of the batch in the running statistics.
const MOMENTUM: f64 = 0.1;

/// The affine map after the norm.
struct Affine<'g> {
    weight: Tensor<'g>,
    bias: Tensor<'g>,
}

impl<'g> Affine<'g> {
    fn new(scope: &Scope<'_, 'g>, width: usize) -> Self {
        Affine {
            weight: scope.parameter("weight", [width], Initial::Constant(1.0)),
            bias: scope.parameter("bias", [width], Initial::Constant(0.0)),
        }
    }

    fn normalise(&self, centred: Tensor<'g>, variance: Tensor<'g>) -> Tensor<'g> {
        let scale = (variance + EPSILON).sqrt().reciprocal() * self.weight;
        centred * spread(scale, &centred) + spread(self.bias, &centred)
    }
}

/// Batch norm.
pub struct BatchNorm<'g> {
    affine: Affine<'g>,
    running_mean: State<'g>,
    running_variance: State<'g>,
    batches: State<'g>,
    pass: Pass<'g>,
}

impl<'g> BatchNorm<'g> {
    /// Over `width` channels.
    pub fn new(scope: &Scope<'_, 'g>, width: usize) -> Self {
        BatchNorm {
            affine: Affine::new(scope, width),
            running_mean: scope.state("running_mean", [width], Initial::Constant(0.0)),
            running_variance: scope.state("running_var", [width], Initial::Constant(1.0)),
            batches: scope.optional_state("num_batches_tracked", [], Initial::Constant(0.0)),
            pass: scope.pass(),
        }
    }

    /// `[batch, …, width]` → `[batch, …, width]`
    pub fn forward(&self, x: Tensor<'g>, mode: Mode) -> Tensor<'g> {
        match mode {
            Mode::Training => self.train(x),
            Mode::Inference => self.affine.normalise(x - self.running_mean.value(), self.running_variance.value()),
        }
    }

    fn train(&self, x: Tensor<'g>) -> Tensor<'g> {
        let shape = x.shape();
        let (dims, rank) = (shape.dims(), shape.rank());
        let width = dims[rank - 1];
        let values = shape.count() / width;
        let lone = values == dims[0]; // one value of a channel per sample
        if lone {
            self.pass.need_batch(2);
        }
        let weights = self.pass.weights().map(|weights| {
            let mut spread = vec![1; rank];
            spread[0] = dims[0];
            weights.reshape(spread) // [batch, 1, …, 1]
        });
        let weighted = |sums: Tensor<'g>| weights.map_or(sums, |weights| sums * weights); // [batch, 1, …, width]
        let count = match weights {
            Some(weights) => weights.sum_all() * (values / dims[0]) as f64,
            None => x.graph().fill(values as f64, []),
        };
        let average = |values: Tensor<'g>| weighted(sum_over_grid(values)).sum(&[0]) / count; // [1, …, width]
        let (mean, centred, variance) = moments(x, average);
        // The last batch of an epoch may have one value of each channel. It has no variance, and says nothing about others.
        let unbiased = variance * (count / (count - 1.0).maximum(x.graph().fill(1.0, [])));
        let moved = |state: &State<'g>, new: Tensor<'g>| {
            let old = state.value();
            let mixed = old * (1.0 - MOMENTUM) + new.reshape([width]) * MOMENTUM;
            let single = || count.less(x.graph().fill(2.0, [])).reshape([1]).broadcast_to([width]);
            state.set(if lone { single().select(old, mixed) } else { mixed });
        };
        moved(&self.running_mean, mean);
        moved(&self.running_variance, unbiased);
        self.batches.set(self.batches.value() + 1.0);
        self.affine.normalise(centred, variance)
    }
}

/// Instance norm.
pub struct InstanceNorm<'g> {
    affine: Affine<'g>,
}

impl<'g> InstanceNorm<'g> {
    /// Over `width` channels.
    pub fn new(scope: &Scope<'_, 'g>, width: usize) -> Self {
        InstanceNorm { affine: Affine::new(scope, width) }
    }

    /// `[batch, …, width]` → `[batch, …, width]`
    pub fn forward(&self, x: Tensor<'g>) -> Tensor<'g> {
        let shape = x.shape();
        let points: usize = shape.dims()[1..shape.rank() - 1].iter().product();
        assert!(points > 1, "instance norm: a field of shape {shape} has one point, and no variance");
        let (_, centred, variance) = moments(x, |values| sum_over_grid(values) * (1.0 / points as f64));
        self.affine.normalise(centred, variance)
    }
}

/// Σ over the grid, `[batch, …, width]` → `[batch, 1, …, width]`, axis by axis from the last: a sum of sums of a hundred numbers
/// is rounded less often than one of ten thousand.
fn sum_over_grid(values: Tensor<'_>) -> Tensor<'_> {
    (1..values.shape().rank() - 1).rev().fold(values, |sum, axis| sum.sum(&[axis]))
}

/// `[…, width]` as often as `like` has it. Axis by axis, so that the gradient is a sum of sums, too.
fn spread<'g>(values: Tensor<'g>, like: &Tensor<'g>) -> Tensor<'g> {
    let (from, to) = (values.shape(), like.shape());
    let mut dims = [vec![1; to.rank() - from.rank()], from.dims().to_vec()].concat();
    let mut values = values.reshape(dims.clone());
    for (axis, &extent) in to.dims().iter().enumerate() {
        dims[axis] = extent;
        values = values.broadcast_to(dims.clone());
    }
    values
}

/// Mean, deviations from it, and variance. A field that hardly varies about a large mean keeps its digits: the sums are those
/// of x − c, where c is the rounded mean, a number that changes none of the three.
fn moments<'g>(x: Tensor<'g>, average: impl Fn(Tensor<'g>) -> Tensor<'g>) -> (Tensor<'g>, Tensor<'g>, Tensor<'g>) {
    let rounded = average(x).detach();
    let near = x - spread(rounded, &x);
    let rest = average(near);
    (rounded + rest, near - spread(rest, &x), average(near.square()) - rest.square())
}

/// Which norm a model of the Neural-Solver-Library uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridNormKind {
    /// For steady tasks.
    Batch,
    /// For tasks with time.
    Instance,
}

/// One of the two norms.
pub enum GridNorm<'g> {
    /// Batch norm.
    Batch(BatchNorm<'g>),
    /// Instance norm.
    Instance(InstanceNorm<'g>),
}

impl<'g> GridNorm<'g> {
    /// Over `width` channels.
    pub fn new(scope: &Scope<'_, 'g>, width: usize, kind: GridNormKind) -> Self {
        match kind {
            GridNormKind::Batch => GridNorm::Batch(BatchNorm::new(scope, width)),
            GridNormKind::Instance => GridNorm::Instance(InstanceNorm::new(scope, width)),
        }
    }

    /// `[batch, …, width]` → `[batch, …, width]`
    pub fn forward(&self, x: Tensor<'g>, mode: Mode) -> Tensor<'g> {
        match self {
            GridNorm::Batch(norm) => norm.forward(x, mode),
            GridNorm::Instance(norm) => norm.forward(x),
        }
    }
}
