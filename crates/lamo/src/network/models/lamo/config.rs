//! LaMO's settings: what each of the paper's switches means, and which switches can be combined.

use crate::error::{Refusal, require};
use crate::network::layers::{Discretisation, Selection, cross_heads};
use crate::network::models::check_unified;
use crate::task::Task;
use lamo_geometry::Grid;
use serde::{Deserialize, Serialize};

/// Settings that an error advises where patches cannot be used.
const SLICES: &str = "latent = \"slices\", mixer = \"hydra\" and directions = 2";

/// What the latent tokens are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Latent {
    /// Square patches of a plane; the tokens live through all blocks.
    Patches,
    /// Soft slices of any set of points; the tokens live inside a block.
    Slices,
}

/// Whose slice maps a block uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encoder {
    /// One set for all blocks.
    Shared,
    /// Each block has its own.
    Own,
}

/// How tokens become points again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decoder {
    /// By the encoder's weights, as in the authors' code.
    Tied,
    /// By W = softmax(Linear(·)) of its own, as in the paper's text.
    Own,
}

/// What mixes the tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mixer {
    /// Scans along rows and columns of patches.
    Cross,
    /// Two shifted scans and a data-dependent skip.
    Hydra,
    /// The mean of Mamba-2 forwards and backwards.
    Mamba2,
}

/// All settings; the defaults are the paper's Darcy model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// What the latent tokens are.
    pub latent: Latent,
    /// Side p of a patch.
    pub patch: usize,
    /// Plane extents after zero padding below and right; 0 is the next multiple of the patch.
    pub padded: [usize; 2],
    /// M, number of slices.
    pub tokens: usize,
    /// Heads of the slice maps.
    pub slice_heads: usize,
    /// Whose slice maps a block uses.
    pub encoder: Encoder,
    /// How tokens become points again.
    pub decoder: Decoder,
    /// What mixes the tokens.
    pub mixer: Mixer,
    /// 1 unidirectional, 2 bidirectional, 4 multidirectional (mixer cross).
    pub directions: usize,
    /// C, channels of points and tokens.
    pub width: usize,
    /// Number of blocks.
    pub depth: usize,
    /// Hidden channels of a block's MLP over its width.
    pub mlp_ratio: usize,
    /// N, size of the state.
    pub states: usize,
    /// Inner channels of the mixer over its width.
    pub expand: usize,
    /// P, channels of a scan head (hydra, mamba2; cross has ⌈C/16⌉ heads).
    pub head_width: usize,
    /// Groups of heads that share B and C (hydra, mamba2; cross has one group per direction).
    pub groups: usize,
    /// Width of the mixer's convolution.
    pub convolution: usize,
    /// How the continuous system becomes a recurrence.
    pub discretisation: Discretisation,
    /// Side of the lattice whose distances replace the positions (slices); 0 keeps the positions.
    pub unified_positions: usize,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            latent: Latent::Patches,
            patch: 2,
            padded: [0, 0],
            tokens: 64,
            slice_heads: 8,
            encoder: Encoder::Own,
            decoder: Decoder::Tied,
            mixer: Mixer::Cross,
            directions: 4,
            width: 64,
            depth: 8,
            mlp_ratio: 4,
            states: 64,
            expand: 2,
            head_width: 32,
            groups: 1,
            convolution: 3,
            discretisation: Discretisation::Euler,
            unified_positions: 0,
        }
    }
}

impl Config {
    /// Sizes of the mixers.
    pub(super) fn selection(&self) -> Selection {
        Selection {
            states: self.states,
            expand: self.expand,
            head_width: self.head_width,
            groups: self.groups,
            convolution: self.convolution,
            directions: self.directions,
            discretisation: self.discretisation,
        }
    }

    /// The plane after padding.
    pub(super) fn padded(&self, rows: usize, columns: usize) -> [usize; 2] {
        let pad = |extent: usize, wanted: usize| if wanted == 0 { extent.next_multiple_of(self.patch) } else { wanted };
        [pad(rows, self.padded[0]), pad(columns, self.padded[1])]
    }

    /// Refuses what cannot be built, in one sentence.
    pub(super) fn check(&self, task: &Task) -> Result<(), Refusal> {
        let positive = [
            ("patch", self.patch),
            ("tokens", self.tokens),
            ("slice_heads", self.slice_heads),
            ("width", self.width),
            ("depth", self.depth),
            ("mlp_ratio", self.mlp_ratio),
            ("states", self.states),
            ("expand", self.expand),
            ("head_width", self.head_width),
            ("groups", self.groups),
            ("convolution", self.convolution),
        ];
        for (name, value) in positive {
            require(value > 0, || format!("model lamo: {name} must be at least 1, found 0"))?;
        }
        self.check_mixer()?;
        match self.latent {
            Latent::Patches => self.check_patches(task),
            Latent::Slices => self.check_slices(task),
        }
    }

    fn check_mixer(&self) -> Result<(), Refusal> {
        let Config { width, expand, head_width, groups, convolution, .. } = *self;
        let allowed: &[usize] = if self.mixer == Mixer::Cross { &[1, 2, 4] } else { &[1, 2] };
        require(allowed.contains(&self.directions), || {
            format!("model lamo: mixer {:?} scans in {allowed:?} directions, found {}", self.mixer, self.directions)
        })?;
        let centred = self.mixer != Mixer::Mamba2;
        require(!centred || convolution % 2 == 1, || {
            format!(
                "model lamo: the convolution of mixer {:?} is centred, so its width is odd, found {convolution}",
                self.mixer
            )
        })?;
        let inner = expand * width;
        if self.mixer == Mixer::Cross {
            let heads = cross_heads(width);
            return require(inner.is_multiple_of(heads), || {
                format!("model lamo: {inner} inner channels do not divide into the {heads} heads of width {width}")
            });
        }
        require(inner.is_multiple_of(head_width) && (inner / head_width).is_multiple_of(groups), || {
            format!("model lamo: {inner} inner channels do not divide into heads of {head_width} in {groups} groups")
        })
    }

    fn check_patches(&self, task: &Task) -> Result<(), Refusal> {
        let Grid::Plane { rows, columns } = task.grid else {
            return Err(Refusal::said(format!("model lamo: patches need a plane; on other grids use {SLICES}")));
        };
        let [padded_rows, padded_columns] = self.padded(rows, columns);
        let fits = padded_rows >= rows && padded_columns >= columns;
        let divides = padded_rows.is_multiple_of(self.patch) && padded_columns.is_multiple_of(self.patch);
        require(fits && divides, || {
            format!(
                "model lamo: padded = [{padded_rows}, {padded_columns}] must cover {rows} × {columns} in patches of {}",
                self.patch
            )
        })?;
        require(!task.time.is_input() && self.unified_positions == 0, || {
            format!("model lamo: patches take neither a time nor unified positions; use {SLICES}")
        })
    }

    fn check_slices(&self, task: &Task) -> Result<(), Refusal> {
        let Config { width, slice_heads, .. } = *self;
        require(self.mixer != Mixer::Cross, || {
            "model lamo: slices have no rows and columns to scan along; use mixer = \"hydra\" or \"mamba2\"".to_owned()
        })?;
        require(width.is_multiple_of(slice_heads), || {
            format!("model lamo: width {width} does not divide into {slice_heads} slice heads")
        })?;
        check_unified("lamo", self.unified_positions, task)?;
        require(!task.time.is_input() || width % 2 == 0, || {
            format!("model lamo: a time needs an even width, found {width}")
        })
    }
}
