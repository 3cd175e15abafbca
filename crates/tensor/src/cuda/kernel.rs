//! A kernel: its text, its arguments, and how it is launched.

use crate::compile::plan::Place;

/// What an argument points at.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Argument {
    /// A buffer, at an offset in elements.
    Buffer { buffer: usize, offset: isize },
    /// Scratch memory, from this float on.
    Scratch(usize),
    /// Zeroed counters; a kernel leaves them zero.
    Counters,
    /// A table of row numbers by its position.
    Table(usize),
}

/// A kernel without its name, and how to launch it. `$` stands for the name.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    /// The source that its text uses.
    pub(crate) family: Family,
    /// Definitions before it.
    pub(crate) before: String,
    /// From the opening bracket of the parameters to the end of the body.
    pub(crate) text: String,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) grid: [u32; 3],
    pub(crate) block: u32,
    /// Fewest blocks that a multiprocessor should hold at once.
    pub(crate) resident: u32,
    /// Bytes of dynamic shared memory.
    pub(crate) shared: u32,
    /// Floats of scratch memory.
    pub(crate) scratch: usize,
}

/// Kernels that share a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Family {
    Loop,
    Rows,
    Product,
    Cholesky,
    Convolution,
    Scan,
    Membership,
}

impl Family {
    pub(crate) const ALL: [Family; 7] = [
        Family::Loop,
        Family::Rows,
        Family::Product,
        Family::Cholesky,
        Family::Convolution,
        Family::Scan,
        Family::Membership,
    ];

    /// The source that a kernel of this family may use; each file uses those before it.
    pub(crate) fn source(self) -> String {
        let prelude = include_str!("kernels/prelude.cu");
        let tiles = include_str!("kernels/tiles.cu");
        match self {
            Family::Loop => prelude.to_owned(),
            Family::Rows => [prelude, include_str!("kernels/rows.cu")].concat(),
            Family::Product => [prelude, tiles, include_str!("kernels/product.cu")].concat(),
            Family::Cholesky => [prelude, include_str!("kernels/cholesky.cu")].concat(),
            Family::Convolution => [
                prelude,
                tiles,
                include_str!("kernels/convolution.cu"),
                include_str!("kernels/warp_group.cu"),
                include_str!("kernels/convolution_warp_group.cu"),
            ]
            .concat(),
            Family::Scan => [
                prelude,
                tiles,
                include_str!("kernels/scan.cu"),
                include_str!("kernels/scan_tf32.cu"),
                include_str!("kernels/scan_chain_tf32.cu"),
                include_str!("kernels/scan_output_tf32.cu"),
                include_str!("kernels/scan_gradient_tf32.cu"),
            ]
            .concat(),
            Family::Membership => [
                prelude,
                tiles,
                include_str!("kernels/membership.cu"),
                include_str!("kernels/membership_spread.cu"),
                include_str!("kernels/membership_collect.cu"),
                include_str!("kernels/membership_gradient.cu"),
                include_str!("kernels/membership_plain.cu"),
            ]
            .concat(),
        }
    }
}

impl Argument {
    pub(crate) fn of(place: &Place) -> Argument {
        Argument::Buffer { buffer: place.buffer, offset: place.layout.offset }
    }
}

#[cfg(test)]
mod tests {
    use super::Family;

    #[test]
    fn no_input_of_a_kernel_is_declared_restrict() {
        for family in Family::ALL {
            assert!(!family.source().contains("const float* __restrict__"), "{family:?}: see `await_turn`");
        }
    }
}
