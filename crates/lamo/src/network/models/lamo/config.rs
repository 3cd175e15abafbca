//! LaMO's settings: what each of the paper's switches means, and which switches can be combined.

use crate::error::{Refusal, require};
use crate::network::layers::{AxialConvolution, Decoder, Discretisation, Levers, Middle, Selection, square_side};
use crate::network::models::{GridKind, check_unified};
use crate::network::{Activation, Style};
use crate::task::Task;
use lamo_geometry::Grid;
use serde::{Deserialize, Serialize};

/// Settings that an error advises where patches cannot be used.
const SLICES: &str = "latent = \"slices\", mixer = \"hydra\" and directions = 2";

/// What the latent tokens are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Latent {
    /// Square patches of a plane, or pieces of a line; the tokens live through all blocks.
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

/// What mixes the tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mixer {
    /// Scans along rows and columns of patches, of a volume also along layers, or along a line of them.
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
    /// Side p of a patch; points of a patch on a line.
    pub patch: usize,
    /// Plane extents after zero padding below and right; 0 is the next multiple of the patch. A line is padded to the second. A
    /// volume has three.
    pub padded: Vec<usize>,
    /// Rows and columns of the lattice that patches are cut from; a line has one row, a volume also layers. Fields are
    /// interpolated to it and back. 0 is the grid itself. A model keeps the lattice of its training on every other grid.
    pub lattice: Vec<usize>,
    /// M, number of slices.
    pub tokens: usize,
    /// Heads of the slice maps.
    pub slice_heads: usize,
    /// Whose slice maps a block uses.
    pub encoder: Encoder,
    /// How tokens become points again (slices).
    pub decoder: Decoder,
    /// What mixes the tokens.
    pub mixer: Mixer,
    /// 1 unidirectional, 2 bidirectional, 4 multidirectional: mixer cross on planes, the others over a square of slices; 6: mixer
    /// cross in volumes.
    pub directions: usize,
    /// C, channels of points and tokens.
    pub width: usize,
    /// Number of blocks.
    pub depth: usize,
    /// Hidden channels of a block's MLP over its width.
    pub mlp_ratio: usize,
    /// What stands between the two maps of a block's MLP: `gelu` is the activation.
    pub mlp: Middle,
    /// The activation of a block's MLP, and of the lifting of slices.
    pub activation: Activation,
    /// γ of each block, which begins at 0: slices become z + γ Mix(z), patches z + γ Mix(LN z).
    pub residual: bool,
    /// Frequencies along each axis that mix half of the channels; 0 leaves all channels to the tokens.
    pub spectral_modes: usize,
    /// N, size of the state.
    pub states: usize,
    /// Inner channels of the mixer over its width.
    pub expand: usize,
    /// Scan heads in each direction of the mixer cross; 0 is ⌈C/16⌉, as in the authors' code.
    pub scan_heads: usize,
    /// P, channels of a scan head (hydra, mamba2).
    pub head_width: usize,
    /// Groups of heads that share B and C (hydra, mamba2; cross has one group per direction).
    pub groups: usize,
    /// Width of the mixer's convolution.
    pub convolution: usize,
    /// How the continuous system becomes a recurrence.
    pub discretisation: Discretisation,
    /// Side of the lattice whose distances replace the positions (slices); 0 keeps the positions.
    pub unified_positions: usize,
    /// First values of the linear maps (slices); small is the authors'.
    pub initial: Style,
}

/// Patches on a grid, along each axis of a box: a line is `[1, 1, points]`, a plane `[1, rows, columns]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Layout {
    /// Number of axes of the grid.
    pub axes: usize,
    /// Points.
    pub points: [usize; 3],
    /// The lattice that patches are cut from.
    pub extents: [usize; 3],
    /// Points of a patch.
    pub patch: [usize; 3],
    /// The lattice after zero padding behind its last points.
    pub padded: [usize; 3],
}

impl Layout {
    /// Patches along each axis.
    pub(super) fn patches(&self) -> [usize; 3] {
        [0, 1, 2].map(|axis| self.padded[axis] / self.patch[axis])
    }

    /// The sizes that settings give along the axes: two of a line or plane, three of a volume.
    pub(super) fn given(&self, extents: [usize; 3]) -> Vec<usize> {
        extents[if self.axes == 3 { 0 } else { 1 }..].to_vec()
    }
}

/// Sizes along the axes of a box from those of a setting, the last ones last; 0 where the setting gives none.
fn boxed(sizes: &[usize]) -> [usize; 3] {
    let mut extents = [0; 3];
    extents.iter_mut().rev().zip(sizes.iter().rev()).for_each(|(extent, size)| *extent = *size);
    extents
}

impl Default for Config {
    fn default() -> Self {
        Config {
            latent: Latent::Patches,
            patch: 2,
            padded: vec![0, 0],
            lattice: vec![0, 0],
            tokens: 64,
            slice_heads: 8,
            encoder: Encoder::Own,
            decoder: Decoder::Tied,
            mixer: Mixer::Cross,
            directions: 4,
            width: 64,
            depth: 8,
            mlp_ratio: 4,
            mlp: Middle::Activation,
            activation: Activation::Gelu,
            residual: false,
            spectral_modes: 0,
            states: 64,
            expand: 2,
            scan_heads: 0,
            head_width: 32,
            groups: 1,
            convolution: 3,
            discretisation: Discretisation::Euler,
            unified_positions: 0,
            initial: Style::Small,
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
            scan_heads: self.scan_heads,
            discretisation: self.discretisation,
        }
    }

    /// What a block has beyond the authors'.
    pub(super) fn levers(&self) -> Levers {
        Levers { modes: self.spectral_modes, residual: self.residual, mlp: self.mlp }
    }

    /// Channels that tokens mix: all, or half beside a spectral half.
    pub(super) fn mixed_width(&self) -> usize {
        self.levers().mixed(self.width)
    }

    /// How patches cover a grid with axes; `None` for a cloud.
    pub(super) fn layout(&self, grid: Grid) -> Option<Layout> {
        let (axes, points) = (grid.axes()?, grid.extents()?);
        let patch = [0, 1, 2].map(|axis| if axis + axes < 3 { 1 } else { self.patch });
        let [lattice, wanted] = [&self.lattice, &self.padded].map(|sizes| boxed(sizes));
        let extents = [0, 1, 2].map(|axis| if lattice[axis] == 0 { points[axis] } else { lattice[axis] });
        let padded = [0, 1, 2].map(|axis| match wanted[axis] {
            0 => extents[axis].next_multiple_of(patch[axis]),
            wanted => wanted,
        });
        Some(Layout { axes, points, extents, patch, padded })
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
        self.check_levers(task)?;
        self.check_mixer()?;
        match self.latent {
            Latent::Patches => self.check_patches(task),
            Latent::Slices => self.check_slices(task),
        }
    }

    /// The spectral half needs axes with enough points.
    fn check_levers(&self, task: &Task) -> Result<(), Refusal> {
        let Config { width, spectral_modes: modes, .. } = *self;
        let is_cloud = matches!(task.grid, Grid::Cloud { .. });
        require(!is_cloud || modes == 0, || {
            "model lamo: the spectral half transforms along the axes of a grid, which a cloud does not have; set \
             spectral_modes = 0"
                .to_owned()
        })?;
        require(modes == 0 || width.is_multiple_of(2), || {
            format!("model lamo: a spectral half needs an even width, found {width}")
        })?;
        let (most, extents) = self.layout(task.grid).map_or((0, Vec::new()), |layout| {
            let extents = if self.latent == Latent::Patches { layout.patches() } else { layout.points };
            (AxialConvolution::most_modes(extents), layout.given(extents))
        });
        require(modes <= most, || {
            let extents = times(&extents);
            format!(
                "model lamo: {extents} tokens or points carry at most {most} frequencies along each axis, found \
                 spectral_modes = {modes}"
            )
        })
    }

    fn check_mixer(&self) -> Result<(), Refusal> {
        let Config { expand, head_width, groups, convolution, .. } = *self;
        let width = self.mixed_width();
        require([1, 2, 4, 6].contains(&self.directions), || {
            format!("model lamo: expected 1, 2, 4 or 6 directions, found {}", self.directions)
        })?;
        require(self.directions != 6 || (self.latent == Latent::Patches && self.mixer == Mixer::Cross), || {
            "model lamo: six directions are those of mixer = \"cross\" over patches of a volume; set directions = 2"
                .to_owned()
        })?;
        let square = self.latent == Latent::Slices && square_side(self.tokens).is_some();
        require(self.mixer == Mixer::Cross || self.directions < 4 || square, || {
            let (mixer, tokens) = (self.mixer, self.tokens);
            match self.latent {
                Latent::Slices => {
                    format!("model lamo: four directions need tokens that fill a square, such as 64, found {tokens}")
                }
                Latent::Patches => format!(
                    "model lamo: mixer {mixer:?} scans patches in 1 or 2 directions, found 4; use mixer = \"cross\""
                ),
            }
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
            let heads = self.selection().cross_heads(width);
            return require(inner.is_multiple_of(heads), || {
                format!("model lamo: {inner} inner channels do not divide into {heads} scan heads")
            });
        }
        require(inner.is_multiple_of(head_width) && (inner / head_width).is_multiple_of(groups), || {
            format!("model lamo: {inner} inner channels do not divide into heads of {head_width} in {groups} groups")
        })
    }

    fn check_patches(&self, task: &Task) -> Result<(), Refusal> {
        let Some(layout) = self.layout(task.grid) else {
            return Err(Refusal::said(format!(
                "model lamo: patches need a line, a plane or a volume; on clouds use {SLICES}"
            )));
        };
        let Layout { axes, extents, patch, padded, .. } = layout;
        let (sizes, [extents_said, padded_said]) = (axes.max(2), [extents, padded].map(|sizes| layout.given(sizes)));
        for (name, given) in [("padded", &self.padded), ("lattice", &self.lattice)] {
            let fits = given.len() == sizes || (given.iter().all(|size| *size == 0) && (2..=3).contains(&given.len()));
            require(fits, || {
                let kind = GridKind::of(task.grid).name();
                format!("model lamo: {name} has {sizes} numbers on a {kind}, found {given:?}; set {name} = [0, 0]")
            })?;
        }
        let covers = |axis: usize| padded[axis] >= extents[axis] && padded[axis].is_multiple_of(patch[axis]);
        let is_line = matches!(task.grid, Grid::Line { .. });
        require(!is_line || extents[1] == 1, || {
            format!("model lamo: the lattice of a line has one row, found lattice = {extents_said:?}")
        })?;
        require((0..3).all(covers) && !(is_line && padded[1] > 1), || {
            format!(
                "model lamo: padded = {padded_said:?} must cover {} in patches of {}; set padded = [0, 0]",
                times(&extents_said),
                self.patch
            )
        })?;
        let (most, directions) = ([2, 4, 6][axes - 1], self.directions);
        let scanned = directions <= 2 || (directions == most && (self.mixer == Mixer::Cross || most == 4));
        require(scanned, || {
            let (kind, also) = (GridKind::of(task.grid).name(), ["1 or 2", "1, 2 or 4", "1, 2 or 6"][axes - 1]);
            format!("model lamo: a {kind} is scanned in {also} directions, found {directions}; set directions = {most}")
        })?;
        require(!task.time.is_input() && self.unified_positions == 0, || {
            format!("model lamo: patches take neither a time nor unified positions; use {SLICES}")
        })
    }

    fn check_slices(&self, task: &Task) -> Result<(), Refusal> {
        let Config { width, slice_heads, .. } = *self;
        let mixed = self.mixed_width();
        require(self.mixer != Mixer::Cross, || {
            "model lamo: slices have no rows and columns to scan along; use mixer = \"hydra\" or \"mamba2\"".to_owned()
        })?;
        require(mixed.is_multiple_of(slice_heads), || {
            format!("model lamo: width {mixed} does not divide into {slice_heads} slice heads")
        })?;
        check_unified("lamo", self.unified_positions, task)?;
        require(!task.time.is_input() || width % 2 == 0, || {
            format!("model lamo: a time needs an even width, found {width}")
        })
    }
}

/// `85 × 85`
fn times(extents: &[usize]) -> String {
    extents.iter().map(ToString::to_string).collect::<Vec<_>>().join(" × ")
}
