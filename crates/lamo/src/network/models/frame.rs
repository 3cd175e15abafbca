//! What the grid models of Neural-Solver-Library have in common: the sizes of the image that their body works on, and how
//! these are checked, translated and read off a state dict. See [`Shell`](crate::network::layers::Shell) for what they do.

use super::{Authored, GridKind, Hints, Inferred, OwnData, Settings, Shapes, check_unified};
use crate::error::{Refusal, require};
use crate::network::Activation;
use crate::network::layers::{GridNormKind, ShellShape};
use crate::task::Task;
use lamo_geometry::Grid;
use serde::{Deserialize, Serialize};

/// Settings that all grid models have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// C, channels of the lifted features.
    pub(super) width: usize,
    /// Frequencies along each axis.
    pub(super) modes: usize,
    /// The activation of the lifting.
    pub(super) activation: Activation,
    /// Side of the lattice whose distances replace the positions; 0 keeps the positions.
    pub(super) unified_positions: usize,
    /// Gives the positions a second time, as input functions.
    pub(super) positions_twice: bool,
    /// Points of the padded grid along each axis, those of a line behind a number that is not used; 0 is the padding of the library.
    pub(super) padded: Vec<usize>,
    /// Rows and columns of the image that a cloud is projected to.
    pub(super) lattice: [usize; 2],
    /// Width of the learned coordinates of a cloud.
    pub(super) coordinate_width: usize,
}

/// The usual sizes of the library.
impl Default for Frame {
    fn default() -> Self {
        Frame {
            width: 32,
            modes: 12,
            activation: Activation::Gelu,
            unified_positions: 0,
            positions_twice: false,
            padded: vec![0, 0],
            lattice: [96, 96],
            coordinate_width: 32,
        }
    }
}

/// What a body asks of its image.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    /// The model, for refusals.
    pub(super) model: &'static str,
    /// Lines, and planes and volumes, are padded to multiples of these, unless the padding is set.
    pub(super) steps: [usize; 2],
    /// All extents must be multiples of this.
    pub(super) multiple: usize,
}

/// Axes of the image: 2 for that of a cloud.
pub(super) fn axes(grid: Grid) -> usize {
    if let Grid::Cloud { .. } = grid { 2 } else { grid.shape().len() }
}

/// Points along each axis after padding: as many as wanted, or the next multiple of `step` where that is 0. Of more numbers than axes
/// the last ones count.
pub(super) fn padded_extents(wanted: &[usize], extents: &[usize], step: usize) -> Vec<usize> {
    let wanted = wanted.iter().rev().copied().chain(std::iter::repeat(0));
    let pad = |(extent, wanted): (&usize, usize)| if wanted == 0 { extent.next_multiple_of(step) } else { wanted };
    let mut padded: Vec<usize> = extents.iter().rev().zip(wanted).map(pad).collect();
    padded.reverse();
    padded
}

/// Refuses a list of points along each axis that is not one of this kind of grid.
pub(super) fn check_padded(model: &str, padded: &[usize], grid: Grid) -> Result<(), Refusal> {
    let (kind, sizes) = (GridKind::of(grid).name(), GridKind::of(grid).settings_sizes());
    let unset = padded.iter().all(|size| *size == 0) && (2..=3).contains(&padded.len());
    require(padded.len() == sizes || unset, || {
        format!("model {model}: padded has {sizes} numbers on a {kind}, found {padded:?}; set padded = [0, 0]")
    })
}

/// Largest number of modes that the Fourier transform of a grid has along all axes.
pub(super) fn most_modes(extents: &[usize]) -> usize {
    let (last, others) = extents.split_last().expect("a grid has an axis");
    others.iter().copied().fold(last / 2 + 1, usize::min)
}

/// Modes along each axis of a user's volume, where the weights of a Fourier layer grow with their cube.
pub(super) fn own_modes_in_volumes(data: &OwnData) -> usize {
    if data.quick { 6 } else { 8 }
}

/// `4 × 5 × 6`
pub(super) fn by(extents: &[usize]) -> String {
    extents.iter().map(ToString::to_string).collect::<Vec<_>>().join(" × ")
}

impl Frame {
    /// Extents of the image, one for a line, before they are checked.
    pub(super) fn extents(&self, grid: Grid, demand: &Demand) -> Vec<usize> {
        let [line, others] = demand.steps;
        match grid {
            Grid::Cloud { .. } => self.lattice.to_vec(),
            Grid::Line { .. } => padded_extents(&self.padded, &grid.shape(), line),
            Grid::Plane { .. } | Grid::Volume { .. } => padded_extents(&self.padded, &grid.shape(), others),
        }
    }

    /// Refuses settings that do not fit the task, and returns the sizes of the shell.
    pub(super) fn shell(&self, task: &Task, demand: &Demand) -> Result<ShellShape, Refusal> {
        let Frame { width, modes, activation, unified_positions, positions_twice, coordinate_width, .. } = *self;
        let Demand { model, multiple, .. } = *demand;
        for (name, value) in [("width", width), ("modes", modes)] {
            require(value > 0, || Refusal::new(format!("model {model}: {name}"), "at least 1", "0"))?;
        }
        require(!task.time.is_input() || width > 1, || {
            format!("model {model}: a time needs a width of at least 2, found {width}")
        })?;
        check_unified(model, unified_positions, task)?;
        let extents = self.extents(task.grid, demand);
        let fits = |extent: &usize| *extent > 0 && extent.is_multiple_of(multiple);
        if let Grid::Cloud { .. } = task.grid {
            let [rows, columns] = self.lattice;
            require(extents.iter().all(fits), || {
                Refusal::new(
                    format!("model {model}: lattice"),
                    format!("multiples of {multiple}"),
                    format!("{extents:?}"),
                )
            })?;
            let most = most_modes(&self.lattice);
            require(modes <= most, || {
                format!(
                    "model {model}: a lattice of {rows} × {columns} points carries at most {most} modes, found {modes}; set modes = {most}"
                )
            })?;
            require(coordinate_width > 0 && coordinate_width.is_multiple_of(4), || {
                Refusal::new(
                    format!("model {model}: coordinate_width"),
                    "a multiple of 4",
                    coordinate_width.to_string(),
                )
            })?;
        } else {
            check_padded(model, &self.padded, task.grid)?;
            let grid = task.grid.shape();
            let covers = extents.iter().zip(&grid).all(|(padded, extent)| padded >= extent);
            require(covers && extents.iter().all(fits), || {
                format!(
                    "model {model}: padded = {extents:?} must cover {grid:?} points with multiples of {multiple}; set padded = [0, 0]"
                )
            })?;
        }
        let mut image = [1; 3];
        image[3 - extents.len()..].copy_from_slice(&extents);
        Ok(ShellShape {
            hidden: 2 * width,
            width,
            activation,
            unified_positions,
            positions_twice,
            image,
            modes,
            coordinate_width,
        })
    }

    /// The padding of a small grid, whose coarsest level would otherwise be one pixel without a deviation to divide by: twice the
    /// points along both axes, in a volume along the last one.
    pub(super) fn own(data: &OwnData, demand: &Demand) -> Settings {
        let grid = data.grid.filter(|grid| !matches!(grid, Grid::Cloud { .. }));
        let extents = grid.map(|grid| Frame::default().extents(grid, demand)).unwrap_or_default();
        let small = !extents.is_empty() && extents.iter().all(|&extent| extent <= demand.multiple);
        let twice = 2 * demand.multiple as i64;
        let padded = if extents.len() == 3 { vec![0, 0, twice] } else { vec![twice; 2] };
        small.then(|| ("padded".to_owned(), toml::Value::from(padded))).into_iter().collect()
    }

    /// The sizes and the task of one of the library's classes.
    pub(super) fn translate(authored: &Authored<'_>) -> Result<(Frame, Task), Refusal> {
        let (model, constructor, usual) = (authored.table("model"), authored.table("constructor"), Frame::default());
        let grid = authored.library_grid()?;
        let [rows, columns] = usual.lattice;
        let frame = Frame {
            width: model.number("n_hidden")?,
            modes: model.number_or("modes", usual.modes)?,
            activation: model.activation()?,
            unified_positions: model.unified_positions()?,
            lattice: [constructor.number_or("s1", rows)?, constructor.number_or("s2", columns)?],
            coordinate_width: constructor.number_or("iphi_width", usual.coordinate_width)?,
            ..usual
        };
        Ok((frame, model.task(grid, "out_dim")?))
    }

    /// The sizes and the task behind a state dict; `kernel` is a tensor whose axes after the first two are those of the grid.
    pub(super) fn infer(shapes: &Shapes, hints: &Hints, kernel: (&str, usize)) -> Result<(Frame, Inferred), Refusal> {
        const PROJECTION: &str = "fftproject_in.weights1";
        let (mut frame, mut assumed) = (Frame::default(), Vec::new());
        frame.width = shapes.extent("preprocess.linear_post.weight", 0)?;
        frame.unified_positions = hints.setting("unified_positions").unwrap_or(0);
        frame.positions_twice = hints.settings.get("positions_twice").and_then(toml::Value::as_bool).unwrap_or(false);
        let grid = if shapes.has(PROJECTION) {
            frame.modes = shapes.extent(PROJECTION, 2)?;
            frame.coordinate_width = shapes.extent("iphi.fc0.weight", 0)?;
            hints.grid.unwrap_or(Grid::Cloud { points: 1 })
        } else {
            match shapes.rank(kernel.0)?.checked_sub(kernel.1) {
                Some(3) => hints.volume()?,
                Some(2) => hints.plane()?,
                _ => hints.line()?,
            }
        };
        let lattice = hints.lattice(frame.unified_positions, grid);
        let twice = if frame.positions_twice { hints.space.unwrap_or(2) } else { 0 };
        let inputs = shapes.extent("preprocess.linear_pre.0.weight", 1)?.saturating_sub(twice);
        let [space, functions] = hints.split(inputs, lattice, grid, &mut assumed)?;
        let (outputs, time) = (shapes.extent("fc2.weight", 0)?, shapes.has("time_fc.0.weight"));
        Ok((frame, Inferred { settings: Settings::new(), grid, space, functions, outputs, time, assumed }))
    }
}

/// Whether the frequencies of our times are rounded to float32 where the library's double precision keeps them.
pub(super) fn single_stage(task: &Task) -> bool {
    task.time.is_input()
}

/// Extents of a padded grid to which a model with waves moves: the zeros are as long as in training, up to half a point, where
/// the outermost points of both grids coincide. Without zeros, the grid itself is one period.
pub(super) fn moved_periods(periods: &[usize], [from, to]: [&[usize]; 2]) -> Vec<usize> {
    let moved = |((&from, &period), &to): ((&usize, &usize), &usize)| match (from, period) {
        (1, _) => 0,
        _ if period == from => to,
        _ => ((period * (to - 1)) as f64 / (from - 1) as f64).round().max(to as f64) as usize,
    };
    from.iter().zip(periods).zip(to).map(moved).collect()
}

/// What convolutions are normalised by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Norm {
    /// By the batch where the task is steady, else by each sample, as the library does.
    #[default]
    Auto,
    /// By mean and deviation over the batch; predictions use running statistics.
    Batch,
    /// By mean and deviation of each sample.
    Instance,
}

/// Settings of the models whose body has five levels; the defaults are those of most of the library's scripts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GridConfig {
    /// C, channels of the finest level.
    pub width: usize,
    /// Frequencies along each axis, of the Fourier layers and of the projection of a cloud.
    pub modes: usize,
    /// The norm after each convolution.
    pub norm: Norm,
    /// The activation of the lifting.
    pub activation: Activation,
    /// Side of the lattice whose distances replace the positions; 0 keeps the positions.
    pub unified_positions: usize,
    /// Gives the positions a second time, as input functions, as the library's script for Pipe does.
    pub positions_twice: bool,
    /// Points along each axis after zero padding; 0 is the next multiple of 16. A line is padded to the second; a volume has three.
    pub padded: Vec<usize>,
    /// Points of the image that a cloud is projected to.
    pub lattice: [usize; 2],
    /// Width of the learned coordinates of a cloud.
    pub coordinate_width: usize,
}

impl Default for GridConfig {
    fn default() -> Self {
        GridConfig::of(Frame::default(), Norm::Auto)
    }
}

impl GridConfig {
    pub(super) fn of(frame: Frame, norm: Norm) -> Self {
        let Frame { width, modes, activation, unified_positions, positions_twice, padded, lattice, coordinate_width } =
            frame;
        GridConfig {
            width,
            modes,
            norm,
            activation,
            unified_positions,
            positions_twice,
            padded,
            lattice,
            coordinate_width,
        }
    }

    pub(super) fn frame(&self) -> Frame {
        let GridConfig {
            width,
            modes,
            activation,
            unified_positions,
            positions_twice,
            padded,
            lattice,
            coordinate_width,
            ..
        } = self.clone();
        Frame { width, modes, activation, unified_positions, positions_twice, padded, lattice, coordinate_width }
    }

    /// The settings and the task behind a state dict; `convolution` is the name of its first double convolution.
    pub(super) fn infer(shapes: &Shapes, hints: &Hints, convolution: &str) -> Result<(GridConfig, Inferred), Refusal> {
        let (frame, inferred) = Frame::infer(shapes, hints, (&format!("{convolution}.0.weight"), 2))?;
        Ok((GridConfig::of(frame, Norm::infer(shapes, &format!("{convolution}.1"))), inferred))
    }
}

impl Norm {
    /// The norm for a task.
    pub(super) fn kind(self, task: &Task) -> GridNormKind {
        match self {
            Norm::Auto if task.time.is_series() => GridNormKind::Instance,
            Norm::Auto | Norm::Batch => GridNormKind::Batch,
            Norm::Instance => GridNormKind::Instance,
        }
    }

    /// Refuses a norm of each sample where the coarsest level of an image has one pixel.
    pub(super) fn check(self, task: &Task, shell: &ShellShape, demand: &Demand) -> Result<GridNormKind, Refusal> {
        let kind = self.kind(task);
        let pixels: usize = shell.image.iter().map(|extent| extent.div_ceil(demand.multiple)).product();
        require(kind == GridNormKind::Batch || pixels > 1, || {
            let (model, larger) = (demand.model, 2 * demand.multiple);
            let key = if let Grid::Cloud { .. } = task.grid { "lattice" } else { "padded" };
            let volume = matches!(task.grid, Grid::Volume { .. });
            let image = by(if volume { &shell.image } else { &shell.image[1..] });
            let larger = vec![larger; if volume { 3 } else { 2 }];
            format!(
                "model {model}: the norm of a sample needs more than one pixel at the coarsest level, found an image of \
                 {image}; set {key} = {larger:?}"
            )
        })?;
        Ok(kind)
    }

    /// The norm that the library takes for its `task`.
    pub(super) fn translate(authored: &Authored<'_>) -> Norm {
        if authored.tables["model"]["task"] == "steady" { Norm::Batch } else { Norm::Instance }
    }

    /// The norm of a state dict, which has running statistics only for batches.
    pub(super) fn infer(shapes: &Shapes, layer: &str) -> Norm {
        if shapes.has(&format!("{layer}.running_mean")) { Norm::Batch } else { Norm::Instance }
    }
}
