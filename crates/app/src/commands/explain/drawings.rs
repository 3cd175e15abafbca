//! The pictures of an explanation.

use crate::plot::{
    Curve, CurvePanel, Drawing, FieldColumn, FieldPicture, Ink, Layout, Marker, MatrixPicture, MatrixRow, Scale,
    curve_panels, field_sheet, matrix_sheet,
};
use crate::report::{layout_of, volume_layout};
use lamo::inference::evaluate::spectrum::Spectrum;
use lamo::inference::explain::{Domain, Explained, Matrix};
use lamo::workflow::{ExplainedSample, Region};
use lamo_geometry::Grid;

/// Pictures side by side.
const ACROSS: usize = 4;
/// Matrices of a row.
const MATRICES: usize = 8;
/// Heads whose signed matrices are drawn.
pub(super) const HEADS: usize = 4;
/// Slices that are drawn one by one.
pub(super) const SLICES: usize = 8;
/// The scale of matrices ends where this share of the entries off the diagonal lies below.
const MOST: f64 = 0.995;
/// Powers of ten that a map of influence shows.
const DECADES: f32 = 4.0;

/// The value below which a share of the values lies.
fn quantile(values: impl Iterator<Item = f32>, share: f64) -> f32 {
    let mut sorted: Vec<f32> = values.filter(|value| value.is_finite()).collect();
    sorted.sort_by(f32::total_cmp);
    let last = sorted.len().saturating_sub(1);
    sorted.get((share * last as f64).round() as usize).copied().unwrap_or(0.0)
}

/// Entries off the diagonal of a matrix of so many rows; the only entry of a matrix with one row.
fn off_diagonal((side, values): (usize, &[f32])) -> impl Iterator<Item = f32> {
    let place = move |place: &usize| side < 2 || place / side != place % side;
    (0..values.len()).filter(place).map(|place| values[place])
}

/// The scale of row-stochastic matrices with so many rows: from 0 to nearly the largest share off the diagonal, which the skips
/// make large.
pub(crate) fn share_scale<'a>(matrices: impl Iterator<Item = (usize, &'a [f32])>) -> Scale {
    Scale::of([0.0, quantile(matrices.flat_map(off_diagonal), MOST)].into_iter())
}

/// log₁₀ of the strength over the largest, from −4 on.
fn decades(strength: &[f32]) -> Vec<f32> {
    let most = strength.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
    strength.iter().map(|value| (value / most).log10().max(-DECADES)).collect()
}

fn one(title: String, pictures: Vec<FieldPicture>) -> FieldColumn {
    FieldColumn { title, pictures }
}

/// Truth, prediction and error of the asked channel, and the influence on the asked output.
pub(super) fn sample(explained: &ExplainedSample) -> Drawing {
    let (layout, influence) = (layout(explained), &explained.explanation.influence);
    let outputs = explained.samples.outputs;
    let size = explained.samples.grid.points() * outputs;
    let channel =
        |values: &[f32]| values.iter().skip(influence.channel).step_by(outputs).copied().collect::<Vec<f32>>();
    let truth = channel(&explained.samples.targets[explained.time * size..][..size]);
    let prediction = channel(&explained.explanation.prediction);
    let error: Vec<f32> = prediction.iter().zip(&truth).map(|(found, truth)| found - truth).collect();
    let scale = Scale::of(truth.iter().copied());
    let errors = Scale::signed(error.iter().copied());
    let strengths = Scale::of([-DECADES, 0.0].into_iter());
    let pictures = [
        ("truth", truth, scale, None),
        ("prediction", prediction, scale, None),
        ("prediction − truth", error, errors, Some(influence.point)),
        ("log₁₀ of the influence", decades(&influence.strength), strengths, Some(influence.point)),
    ];
    let column = |(title, values, scale, mark): (&str, Vec<f32>, Scale, Option<usize>)| {
        let picture = FieldPicture { title: String::new(), layout: layout.clone(), values, scale, mark };
        one(title.to_owned(), vec![in_layer(volume(explained), influence.point, picture)])
    };
    field_sheet(&pictures.map(column), ACROSS)
}

/// Rows, columns and layers of a volume.
fn volume(explained: &ExplainedSample) -> Option<[usize; 3]> {
    let grid = explained.samples.grid;
    grid.extents().filter(|_| matches!(grid, Grid::Volume { .. }))
}

/// The layer of a volume in which a point lies; pictures of other grids stay as they are.
fn in_layer(volume: Option<[usize; 3]>, point: usize, picture: FieldPicture) -> FieldPicture {
    let Some([rows, columns, layers]) = volume else { return picture };
    let values = picture.values.iter().skip(point % layers).step_by(layers).copied().collect();
    let mark = picture.mark.map(|mark| mark / layers);
    FieldPicture { layout: Layout::Grid([rows, columns]), values, mark, ..picture }
}

fn layout(explained: &ExplainedSample) -> Layout {
    layout_of(&explained.trained.operator.task, &explained.samples, 0, &explained.triangles)
}

/// The mean over the heads of the shares, layer by layer, with one scale.
pub(super) fn matrices(layers: &[Explained]) -> Drawing {
    let scale = share_scale(layers.iter().map(|layer| (layer.shares.side, layer.shares.values.as_slice())));
    let picture = |(number, layer): (usize, &Explained)| titled(format!("layer {}", number + 1), &layer.shares);
    let title = "what each token (row) takes from each token (column)".to_owned();
    let row = MatrixRow { title, scale, matrices: layers.iter().enumerate().map(picture).collect() };
    matrix_sheet(&[row], layers.len().clamp(4, MATRICES))
}

fn titled(title: String, matrix: &Matrix) -> MatrixPicture {
    MatrixPicture { title, side: matrix.side, values: matrix.values.clone() }
}

/// The signed matrices of the first heads of a layer: all directions together, and each direction.
pub(super) fn heads(layer: &Explained) -> Drawing {
    let row = |(number, head): (usize, &lamo::inference::explain::HeadMatrices)| {
        let mut matrices = vec![titled("all".to_owned(), &head.whole)];
        let directions = head.directions.iter().enumerate();
        matrices.extend(directions.map(|(place, matrix)| titled(format!("direction {}", place + 1), matrix)));
        let all = matrices.iter().flat_map(|matrix| off_diagonal((matrix.side, &matrix.values)));
        let most = quantile(all.map(f32::abs), MOST);
        MatrixRow { title: format!("head {}", number + 1), scale: Scale::signed([most].into_iter()), matrices }
    };
    let across = layer.heads.first().map_or(1, |head| 1 + head.directions.len());
    matrix_sheet(&layer.heads.iter().enumerate().take(HEADS).map(row).collect::<Vec<_>>(), across.max(ACROSS))
}

/// Where the tokens of each layer lie; `None` where no layer says so.
pub(super) fn tokens(explained: &ExplainedSample) -> Option<Drawing> {
    let layout = layout(explained);
    let layers = explained.explanation.layers.iter().enumerate();
    let column = |(number, layer): (usize, &Explained)| {
        let picture = match layer.domain.as_ref()? {
            Domain::Slices { slices, weights, .. } => {
                let values = strongest(&layout, weights, *slices);
                let scale = Scale::of([0.0, (*slices as f32 - 1.0).max(1.0)].into_iter());
                let picture = FieldPicture { title: String::new(), layout: layout.clone(), values, scale, mark: None };
                in_layer(volume(explained), explained.explanation.influence.point, picture)
            }
            Domain::Patches { patches, token } => {
                let scale = Scale::of([0.0, quantile(layer.attended.iter().copied(), MOST)].into_iter());
                let mark = token.get(explained.explanation.influence.point).map(|token| *token as usize);
                let layout = match patches[..] {
                    [rows, columns, layers] => volume_layout(Grid::Volume { rows, columns, layers }),
                    [1, columns] => Layout::Grid([columns, 1]),
                    [rows, columns] => Layout::Grid([rows, columns]),
                    _ => return None,
                };
                let box_of_patches = <[usize; 3]>::try_from(&patches[..]).ok();
                let picture =
                    FieldPicture { title: String::new(), layout, values: layer.attended.clone(), scale, mark };
                in_layer(box_of_patches, mark.unwrap_or(0), picture)
            }
        };
        Some(one(format!("layer {}", number + 1), vec![picture]))
    };
    let columns: Vec<FieldColumn> = layers.filter_map(column).collect();
    (!columns.is_empty()).then(|| field_sheet(&columns, ACROSS))
}

/// For each point the slice of the first head with the largest weight. Slices are numbered by where they lie, so that slices that
/// are close have close numbers.
fn strongest(layout: &Layout, weights: &[f32], slices: usize) -> Vec<f32> {
    let points = layout.points();
    let abscissa = |point: usize| match (layout.positions(), layout) {
        (Some(positions), _) => positions[point][0],
        (None, Layout::Grid([rows, columns])) if *columns > 1 => {
            (point % columns * rows + point / columns) as f32 // columns first, rows break ties
        }
        _ => point as f32,
    };
    let centre = |slice: usize| {
        let own = &weights[slice * points..][..points];
        let sums = own.iter().enumerate().fold([0.0; 2], |[sum, mass], (point, weight)| {
            [sum + f64::from(*weight * abscissa(point)), mass + f64::from(*weight)]
        });
        sums[0] / sums[1].max(1e-30)
    };
    let mut order: Vec<(f64, usize)> = (0..slices).map(|slice| (centre(slice), slice)).collect();
    order.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut rank = vec![0.0; slices];
    order.iter().enumerate().for_each(|(place, (_, slice))| rank[*slice] = place as f32);
    let weight = |slice: usize, point: usize| weights[slice * points + point];
    let strongest = |point: usize| {
        let best = (0..slices).max_by(|one, other| weight(*one, point).total_cmp(&weight(*other, point)));
        rank[best.unwrap_or(0)]
    };
    (0..points).map(strongest).collect()
}

/// The weights of the slices with the most points, first head of the last layer with slices.
pub(super) fn slices(explained: &ExplainedSample) -> Option<(usize, Drawing)> {
    let layers = explained.explanation.layers.iter().enumerate().rev();
    let (number, slices, mass, weights) = layers
        .filter_map(|(number, layer)| match layer.domain.as_ref()? {
            Domain::Slices { slices, mass, weights, .. } => Some((number, *slices, mass, weights)),
            Domain::Patches { .. } => None,
        })
        .next()?;
    let layout = layout(explained);
    let points = layout.points();
    let mut heavy: Vec<usize> = (0..slices).collect();
    heavy.sort_by(|one, other| mass[*other].total_cmp(&mass[*one]));
    heavy.truncate(SLICES);
    let column = |slice: &usize| {
        let values = weights[slice * points..][..points].to_vec();
        let scale = Scale::of(values.iter().copied().chain([0.0]));
        let title = format!("slice {}: {:.1} % of the points", slice + 1, 100.0 * mass[*slice]);
        let picture = FieldPicture { title: String::new(), layout: layout.clone(), values, scale, mark: None };
        one(title, vec![in_layer(volume(explained), explained.explanation.influence.point, picture)])
    };
    Some((number + 1, field_sheet(&heavy.iter().map(column).collect::<Vec<_>>(), ACROSS)))
}

fn curve(label: &str, ink: Ink, hollow: bool, points: Vec<[f64; 2]>) -> Curve {
    let points = points.into_iter().map(|[x, y]| [x, y, 0.0, 0.0]).collect();
    Curve { label: label.to_owned(), ink, marker: if hollow { Marker::Square } else { Marker::Circle }, hollow, points }
}

/// Cosine of tokens and concentration of the matrices, layer by layer.
pub(super) fn by_layer(layers: &[Explained]) -> Drawing {
    let points = |value: &dyn Fn(&Explained) -> Option<f64>| -> Vec<[f64; 2]> {
        layers.iter().enumerate().filter_map(|(number, layer)| Some([number as f64 + 1.0, value(layer)?])).collect()
    };
    let panel = |title: &str, curves: Vec<Curve>| CurvePanel {
        title: title.to_owned(),
        horizontal: "layer".to_owned(),
        logarithmic: false,
        vertical: String::new(),
        linear: true,
        curves,
    };
    let cosine = vec![
        curve("cosine after the mixer", Ink::Orange, false, points(&|layer| layer.cosine[1])),
        curve("cosine before", Ink::Faint, true, points(&|layer| layer.cosine[0])),
    ];
    let matrices = vec![
        curve("row entropy", Ink::Blue, false, points(&|layer| Some(layer.entropy))),
        curve("three heaviest columns", Ink::Green, true, points(&|layer| Some(layer.heaviest))),
    ];
    curve_panels(&[panel("mean cosine of two tokens", cosine), panel("concentration of the matrices", matrices)], 2)
}

/// Error and truth over the wave number.
pub(super) fn waves(spectrum: &Spectrum) -> Drawing {
    let rings = |energies: &[f64]| {
        let roots = energies.iter().enumerate().map(|(wave, energy)| [wave as f64, energy.sqrt()]);
        roots.filter(|[_, root]| *root > 0.0).collect::<Vec<_>>()
    };
    let panel = CurvePanel {
        title: "error and truth over ‖truth‖".to_owned(),
        horizontal: "waves per side".to_owned(),
        logarithmic: false,
        vertical: String::new(),
        linear: false,
        curves: vec![
            curve("error", Ink::Orange, false, rings(&spectrum.error)),
            curve("truth", Ink::Faint, true, rings(&spectrum.truth)),
        ],
    };
    curve_panels(&[panel], 1)
}

/// A number of a region, with its name.
type Measure = (&'static str, fn(&Region) -> f64);

/// Error and influence of each region on the points.
pub(super) fn regions(explained: &ExplainedSample) -> Drawing {
    let layout = layout(explained);
    // Regions without points are not in the list; the others keep their order.
    let mut numbers: Vec<usize> = explained.region_of.clone();
    numbers.sort_unstable();
    numbers.dedup();
    let place = |region: &usize| numbers.binary_search(region).unwrap_or(0);
    let column = |(title, value): Measure| {
        let of = |region: &usize| explained.regions.get(place(region)).map_or(0.0, |region| value(region) as f32);
        let values: Vec<f32> = explained.region_of.iter().map(of).collect();
        let scale = Scale::of(values.iter().copied().chain([0.0]));
        one(
            title.to_owned(),
            vec![FieldPicture { title: String::new(), layout: layout.clone(), values, scale, mark: None }],
        )
    };
    let columns: [Measure; 3] = [
        ("relative error", |region| region.error),
        ("share of the squared error", |region| region.share),
        ("share of the influence", |region| region.influence),
    ];
    field_sheet(&columns.map(column), ACROSS)
}
