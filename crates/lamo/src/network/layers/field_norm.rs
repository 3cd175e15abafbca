//! The norm of the fields of a convolutional model.

/// Which values share mean and deviation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormKind {
    /// Those of a channel in all samples of a batch.
    Batch,
    /// Those of a channel in one sample.
    Instance,
}
