//! What layers show of a forward pass: the operands of their mixings, their slices and their tokens.
//!
//! A probe is asked for before the model is applied ([`Parameters::probe`](super::Parameters::probe)). Without one, layers add
//! nothing to the graph, so that the program of a training or a prediction is the same with and without this file.
//!
//! The types are generic in what stands for a tensor: a node of the graph, the name of an output, or an array of values.

use lamo_tensor::{Graph, Shape, Tensor};
use std::cell::RefCell;

/// One selective scan, in one or several directions: for each direction along its order,
///
/// hₗ = exp(ℓₜ) hₗ₋₁ + gₜ xₜ ⊗ Bₜ,  yₜ = hₗ Cₜ,  t = order(l).
#[derive(Clone, Debug)]
pub struct ShownScan<T> {
    /// x `[batch, tokens, heads, channels]`
    pub signal: T,
    /// ℓ `[batch, tokens, directions · heads]`
    pub log_decay: T,
    /// g `[batch, tokens, directions · heads]`
    pub gain: T,
    /// B `[batch, tokens, groups, states]`
    pub write: T,
    /// C `[batch, tokens, groups, states]`
    pub read: T,
    /// h before the first token `[batch, directions · heads, channels, states]`
    pub initial: Option<T>,
    /// The place that each direction visits at each step.
    pub orders: Vec<Vec<u32>>,
    /// The token at each place; `None` where they are the same.
    pub tokens: Option<Vec<u32>>,
    /// A token gets the output of the step before its own, as in Hydra.
    pub shifted: bool,
}

/// How the tokens of a block are mixed: a product with a matrix that depends on the tokens.
#[derive(Clone, Debug)]
pub enum Kernel<T> {
    /// y = Σ scans + skip ∘ x
    Scans {
        /// The scans, whose results are summed.
        scans: Vec<ShownScan<T>>,
        /// `[batch, tokens, heads, channels]`, or 1 in place of an extent where all have the same
        skip: T,
    },
    /// y = softmax(q kᵀ/√c) v, each `[batch, heads, tokens, c]`
    Attention {
        /// q
        query: T,
        /// k
        key: T,
        /// v
        value: T,
    },
}

/// One mixing and its result.
#[derive(Clone, Debug)]
pub struct Mixing<T> {
    /// The matrix and what it acts on.
    pub kernel: Kernel<T>,
    /// y in the order batch, tokens, heads, channels; that of attention `[batch, heads, tokens, c]`
    pub mixed: T,
}

/// Where the tokens of a block lie on the points.
#[derive(Clone, Debug)]
pub enum Places<T> {
    /// Soft slices: w_{nm} = softmax_m(q_n·k_m + b_m) for each head.
    Slices {
        /// q `[samples, points, heads, channels]`
        queries: T,
        /// k `[heads, slices, channels]`
        keys: T,
        /// b `[heads, slices]`
        offsets: T,
    },
    /// Patches of a lattice.
    Patches {
        /// Points along each axis of the box that is cut; a plane is `[1, rows, columns]`.
        extents: [usize; 3],
        /// Points along each axis of a patch.
        patch: [usize; 3],
        /// Patches along each axis; those beyond the lattice are padding.
        patches: [usize; 3],
    },
}

/// What one block shows.
#[derive(Clone, Debug)]
pub struct Layer<T> {
    /// Where its tokens lie.
    pub places: Option<Places<T>>,
    /// `[batch, tokens, width]` tokens before the mixer and after it
    pub tokens: Option<[T; 2]>,
    /// Its mixings: one, or one for each direction where the directions are normalised one by one.
    pub mixings: Vec<Mixing<T>>,
}

impl<T> Default for Layer<T> {
    fn default() -> Self {
        Layer { places: None, tokens: None, mixings: Vec::new() }
    }
}

/// Gathers what layers show.
pub struct Probe<'g> {
    graph: &'g Graph,
    replaced: bool,
    layers: RefCell<Vec<Layer<Tensor<'g>>>>,
}

impl<'g> Probe<'g> {
    pub(super) fn new(graph: &'g Graph, replaced: bool) -> Probe<'g> {
        Probe { graph, replaced, layers: RefCell::default() }
    }

    /// All blocks so far, in the order of the forward pass.
    pub fn layers(&self) -> Vec<Layer<Tensor<'g>>> {
        self.layers.borrow().clone()
    }

    /// The input that stands in place of mixing `number`, counted over all blocks, where mixings are replaced.
    pub fn replacement(number: usize) -> String {
        format!("mixing {number}")
    }

    /// A block begins.
    pub(super) fn begin(&self) {
        self.layers.borrow_mut().push(Layer::default());
    }

    /// Changes the last block; a layer outside of blocks is a block of its own.
    pub(super) fn show(&self, change: impl FnOnce(&mut Layer<Tensor<'g>>)) {
        let mut layers = self.layers.borrow_mut();
        if layers.is_empty() {
            layers.push(Layer::default());
        }
        if let Some(last) = layers.last_mut() {
            change(last);
        }
    }

    /// Adds a mixing to the last block; its result, or the input that stands in its place.
    pub(super) fn mixing(&self, kernel: Kernel<Tensor<'g>>, mixed: Tensor<'g>) -> Tensor<'g> {
        let number = self.layers.borrow().iter().map(|layer| layer.mixings.len()).sum();
        self.show(|layer| layer.mixings.push(Mixing { kernel, mixed }));
        match self.replaced {
            true => self.graph.input(&Probe::replacement(number), Shape::from(mixed.shape().dims())),
            false => mixed,
        }
    }
}

impl<T> ShownScan<T> {
    fn map<U>(&self, f: &mut impl FnMut(&T) -> U) -> ShownScan<U> {
        ShownScan {
            signal: f(&self.signal),
            log_decay: f(&self.log_decay),
            gain: f(&self.gain),
            write: f(&self.write),
            read: f(&self.read),
            initial: self.initial.as_ref().map(&mut *f),
            orders: self.orders.clone(),
            tokens: self.tokens.clone(),
            shifted: self.shifted,
        }
    }
}

impl<T> Kernel<T> {
    fn map<U>(&self, f: &mut impl FnMut(&T) -> U) -> Kernel<U> {
        match self {
            Kernel::Scans { scans, skip } => {
                Kernel::Scans { scans: scans.iter().map(|scan| scan.map(f)).collect(), skip: f(skip) }
            }
            Kernel::Attention { query, key, value } => {
                Kernel::Attention { query: f(query), key: f(key), value: f(value) }
            }
        }
    }
}

impl<T> Places<T> {
    fn map<U>(&self, f: &mut impl FnMut(&T) -> U) -> Places<U> {
        match self {
            Places::Slices { queries, keys, offsets } => {
                Places::Slices { queries: f(queries), keys: f(keys), offsets: f(offsets) }
            }
            Places::Patches { extents, patch, patches } => {
                Places::Patches { extents: *extents, patch: *patch, patches: *patches }
            }
        }
    }
}

impl<T> Layer<T> {
    /// The same with `f` of each tensor, in a fixed order.
    pub fn map<U>(&self, f: &mut impl FnMut(&T) -> U) -> Layer<U> {
        Layer {
            places: self.places.as_ref().map(|places| places.map(f)),
            tokens: self.tokens.as_ref().map(|tokens| tokens.each_ref().map(&mut *f)),
            mixings: (self.mixings.iter())
                .map(|mixing| Mixing { kernel: mixing.kernel.map(f), mixed: f(&mixing.mixed) })
                .collect(),
        }
    }
}
