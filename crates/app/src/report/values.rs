//! The values of a test sample inside the page, for reading them off the maps and for animations. Values are rounded to 65,535
//! steps of their range; where they are too many for the page, some points and times are left out.

use super::html::base64;
use super::pictures::Shared;
use super::scene::{Scene, State};
use crate::commands::evenly;
use crate::plot::{BACK, DARKEST, LIGHT, Layout, Scale, Skin, Thinned, VIEW, Window};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Bytes of all values of a page, approximately.
pub(super) const BUDGET: usize = 2_000_000;
/// Times of a series that are animated.
const TIMES: usize = 48;
/// The code of a value that is not finite.
const MISSING: u16 = u16::MAX;

/// The times of an output that are in the page: those that are drawn, and others evenly between them.
pub(super) fn times_of(count: usize, drawn: &[usize]) -> Vec<usize> {
    let mut times = evenly(count, TIMES);
    times.extend(drawn);
    times.sort_unstable();
    times.dedup();
    times
}

/// The values of a scene as JSON in at most about `budget` bytes.
pub(super) fn values(scene: &Scene, shared: &Shared, budget: usize) -> Value {
    let thinnings = 1..=64;
    let fits = |thinning: &usize| Writer::new(*thinning, shared).size(scene) <= budget;
    let thinning = thinnings.clone().find(fits).unwrap_or(*thinnings.end());
    Writer::new(thinning, shared).write(scene)
}

/// Collects the layouts that states share.
struct Writer<'a> {
    /// Every how many-th row and column is written.
    thinning: usize,
    window: Option<Window>,
    /// Layouts that have been written, of one or of several times.
    known: Vec<Vec<Rc<Layout>>>,
    layouts: Vec<Value>,
    shared: &'a Shared,
    /// Points and triangles of meshes that are written, by the address of the mesh.
    skins: RefCell<HashMap<*const Skin, Rc<Thinned>>>,
}

impl<'a> Writer<'a> {
    fn new(thinning: usize, shared: &'a Shared) -> Writer<'a> {
        let (known, layouts, skins) = (Vec::new(), Vec::new(), RefCell::default());
        Writer { thinning, window: shared.window, known, layouts, shared, skins }
    }

    /// Bytes of the values of a scene in base64, approximately.
    fn size(&self, scene: &Scene) -> usize {
        let values = |states: usize, state: Option<&State>, sets: usize, moves: bool| {
            let points = state.map_or(0, |state| self.chosen(&state.layout).len());
            let positions = if moves { 2 } else { 0 };
            states * points * sets * (1 + positions) * 2 * 4 / 3
        };
        let still = |state: &State| {
            let (each, triangles) = match &*state.layout {
                Layout::Triangles(positions, skin) => {
                    (if skin.is_solid() { 16 } else { 12 }, self.skin(positions, skin).triangles.len())
                }
                _ => (8, 0),
            };
            let points = state.layout.positions().map_or(0, |_| self.chosen(&state.layout).len());
            (points * each + triangles * 12) * 4 / 3
        };
        let given = scene.given.iter().map(|given| values(given.states.len(), given.states.first(), 1, false));
        let outputs = scene.outputs.iter().map(|output| {
            let times = times_of(output.times.len(), &output.drawn_times()).len();
            let sets = if output.is_distance { 3 } else { 2 };
            values(times, output.truth.first(), sets, output.is_distance)
        });
        let positions = scene.outputs.first().and_then(|output| output.truth.first()).map_or(0, still);
        given.chain(outputs).sum::<usize>() + positions
    }

    fn write(mut self, scene: &Scene) -> Value {
        let mut fields = Vec::new();
        for (given, scale) in scene.given.iter().zip(&self.shared.given) {
            let states: Vec<&State> = given.states.iter().collect();
            let sets = if given.has_values { vec![self.set("input", &states)] } else { Vec::new() };
            fields.push(json!({
                "axes": given.axes,
                "times": vec![""; states.len()],
                "sets": sets,
                "scale": colours(scale),
            }));
        }
        for (output, [scale, error_scale]) in scene.outputs.iter().zip(&self.shared.outputs) {
            let times = times_of(output.times.len(), &output.drawn_times());
            let chosen = |states: &'_ [State]| times.iter().map(|&time| states[time].clone()).collect::<Vec<_>>();
            let mut sets = Vec::new();
            for (label, states) in [("truth", &output.truth), ("prediction", &output.prediction)] {
                sets.push(self.set(label, &chosen(states).iter().collect::<Vec<_>>()));
            }
            if output.is_distance {
                sets.push(self.set("distance", &chosen(&output.error).iter().collect::<Vec<_>>()));
            }
            let names: Vec<&str> = times.iter().map(|&time| output.times[time].as_str()).collect();
            fields.push(json!({
                "name": output.name,
                "unit": output.unit,
                "axes": output.axes,
                "times": names,
                "sets": sets,
                "scale": colours(scale),
                "error": colours(error_scale),
            }));
        }
        let window = self.window.map(|window| json!({ "least": window.least(), "most": window.most() }));
        let light = json!({ "towards": LIGHT, "darkest": DARKEST, "back": BACK });
        json!({ "fields": fields, "layouts": self.layouts, "window": window, "view": VIEW, "light": light })
    }

    /// The values of a field at its times.
    fn set(&mut self, label: &str, states: &[&State]) -> Value {
        let layout = self.layout(states);
        let pick = |state: &&State| self.chosen(&state.layout).into_iter().map(|point| state.values[point]).collect();
        let values: Vec<Vec<f32>> = states.iter().map(pick).collect();
        json!({ "label": label, "layout": layout, "values": rounded(&values.concat()) })
    }

    /// The number of the layout of some states: one for all of them, or one for each where the points move.
    fn layout(&mut self, states: &[&State]) -> usize {
        let mut layouts: Vec<Rc<Layout>> = states.iter().map(|state| state.layout.clone()).collect();
        if layouts.iter().all(|layout| Rc::ptr_eq(layout, &layouts[0]) || **layout == *layouts[0]) {
            layouts.truncate(1);
        }
        let same = |known: &Vec<Rc<Layout>>| {
            known.len() == layouts.len() && known.iter().zip(&layouts).all(|(one, other)| Rc::ptr_eq(one, other))
        };
        self.known.iter().position(same).unwrap_or_else(|| {
            self.layouts.push(self.written(&layouts));
            self.known.push(layouts);
            self.known.len() - 1
        })
    }

    fn written(&self, layouts: &[Rc<Layout>]) -> Value {
        let Some(first) = layouts.first() else { return Value::Null };
        let positions = |axis: usize| -> Vec<f32> {
            let of = |layout: &Rc<Layout>| -> Vec<f32> {
                let all = layout.positions().unwrap_or_default();
                self.chosen(layout).into_iter().map(|point| all[point][axis]).collect()
            };
            layouts.iter().flat_map(of).collect()
        };
        let axes = || match layouts.len() {
            1 => json!([exact(&positions(0)), exact(&positions(1))]),
            _ => json!([rounded(&positions(0)), rounded(&positions(1))]),
        };
        let plane = |plane: &[usize; 2]| json!(plane.map(|count| self.along(count)));
        match &**first {
            layout if layout.is_curve() || layout.is_number() => {
                let shares = layout.shares();
                let chosen = self.chosen(layout);
                let shares: Vec<f32> = chosen.iter().map(|&point| shares[point]).collect();
                let at: Option<Vec<f32>> = match layout {
                    Layout::Line(positions) => Some(chosen.iter().map(|&point| positions[point]).collect()),
                    _ => None,
                };
                let at = at.map(|at| exact(&at));
                json!({ "kind": "line", "points": layout.points(), "count": chosen.len(), "shares": exact(&shares), "at": at })
            }
            Layout::Mesh(shape, _) | Layout::Wire(shape, _) => {
                let (size, shape, thinned) = (first.size(self.window.as_ref()), json!(shape), plane(shape));
                json!({ "kind": "mesh", "shape": shape, "plane": thinned, "positions": axes(), "size": size })
            }
            Layout::Cloud(all, depths) => {
                let depths: Vec<f32> =
                    self.chosen(first).into_iter().filter_map(|point| depths.get(point).copied()).collect();
                let depths = (!depths.is_empty()).then(|| rounded(&depths));
                let size = first.size(self.window.as_ref());
                json!({ "kind": "cloud", "points": all.len(), "positions": axes(), "depths": depths, "size": size })
            }
            Layout::Triangles(all, skin) => {
                let Thinned { points: chosen, places, triangles } = &*self.skin(all, skin);
                let solid = |axis: usize| places.iter().map(|&place| skin.solid[place][axis]).collect::<Vec<f32>>();
                let flat = |axis: usize| places.iter().map(|&place| skin.corners[place][axis]).collect::<Vec<f32>>();
                let positions = match skin.is_solid() {
                    true => json!([0, 1, 2].map(|axis| exact(&solid(axis)))),
                    false if skin.corners.is_empty() => axes(),
                    false => json!([0, 1].map(|axis| exact(&flat(axis)))),
                };
                json!({
                    "kind": "triangles",
                    "points": all.len(),
                    "count": chosen.len(),
                    "positions": positions,
                    "triangles": whole(triangles.as_flattened().iter().copied()),
                    "numbers": whole(chosen.iter().map(|&point| point as u32)),
                    "size": first.size(self.window.as_ref()),
                })
            }
            Layout::Grid(shape) => json!({ "kind": "grid", "shape": shape, "plane": plane(shape) }),
            Layout::Line(_) => Value::Null, // is a curve
        }
    }

    /// The points and triangles of a mesh that are written.
    fn skin(&self, positions: &[[f32; 2]], skin: &Rc<Skin>) -> Rc<Thinned> {
        let thinned = || Rc::new(skin.thinned(positions, self.thinning));
        self.skins.borrow_mut().entry(Rc::as_ptr(skin)).or_insert_with(thinned).clone()
    }

    /// How many of the points along one side are written.
    fn along(&self, count: usize) -> usize {
        count.div_ceil(self.thinning).max(count.min(2))
    }

    /// The points that are written: all, or some of the rows and columns. The first and the last are always there.
    fn chosen(&self, layout: &Layout) -> Vec<usize> {
        let side = |count: usize| evenly(count, self.along(count));
        match layout {
            Layout::Grid([rows, columns]) | Layout::Mesh([rows, columns], _) | Layout::Wire([rows, columns], _)
                if *columns > 1 =>
            {
                let across = side(*columns);
                side(*rows)
                    .into_iter()
                    .flat_map(|row| across.iter().map(move |column| row * columns + column))
                    .collect()
            }
            Layout::Triangles(positions, skin) => self.skin(positions, skin).points.clone(),
            other => {
                let count = other.points();
                evenly(count, count.div_ceil(self.thinning * self.thinning).max(count.min(2)))
            }
        }
    }
}

/// The colours of a field: the ends of its range, and evenly spaced colours between them.
fn colours(scale: &Scale) -> Value {
    json!({ "least": scale.least, "most": scale.most, "stops": scale.stops().collect::<Vec<_>>() })
}

/// Values in 65,535 steps of their range: `least + step · code`, codes of 16 bits, the lower byte first.
fn rounded(values: &[f32]) -> Value {
    let range = |[least, most]: [f32; 2], value: f32| [least.min(value), most.max(value)];
    let finite = values.iter().copied().filter(|value| value.is_finite());
    let [least, most] = finite.fold([f32::INFINITY, f32::NEG_INFINITY], range);
    let least = if least.is_finite() { f64::from(least) } else { 0.0 };
    let step = (f64::from(most) - least).max(0.0) / f64::from(MISSING - 1);
    let code = |value: f32| match value.is_finite() {
        true if step > 0.0 => (((f64::from(value) - least) / step).round() as u16).min(MISSING - 1),
        true => 0,
        false => MISSING,
    };
    let bytes: Vec<u8> = values.iter().flat_map(|value| code(*value).to_le_bytes()).collect();
    json!({ "least": least, "step": step, "codes": base64(&bytes) })
}

/// Values as they are, 4 bytes each.
fn exact(values: &[f32]) -> Value {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    json!({ "floats": base64(&bytes) })
}

/// Whole numbers, 4 bytes each.
fn whole(numbers: impl Iterator<Item = u32>) -> Value {
    let bytes: Vec<u8> = numbers.flat_map(u32::to_le_bytes).collect();
    json!(base64(&bytes))
}

#[cfg(test)]
mod tests {
    use super::super::scene::tests::scene;
    use super::*;
    use lamo::data::Samples;
    use lamo::task::Task;
    use lamo_geometry::Grid;

    /// The bytes of text in base64.
    fn bytes(text: &str) -> Vec<u8> {
        let letter = |letter: u8| match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            _ => 63,
        };
        let group = |group: &[u8]| {
            let word = group
                .iter()
                .fold(0u32, |word, &next| word << 6 | u32::from(if next == b'=' { 0 } else { letter(next) }));
            let count = 3 - group.iter().filter(|&&next| next == b'=').count();
            word.to_be_bytes()[1..=count].to_vec()
        };
        text.as_bytes().chunks(4).flat_map(group).collect()
    }

    fn codes(value: &Value) -> Vec<f64> {
        let [least, step] = ["least", "step"].map(|key| value[key].as_f64().unwrap());
        let pairs = bytes(value["codes"].as_str().unwrap());
        let code = |pair: &[u8]| match u16::from_le_bytes([pair[0], pair[1]]) {
            MISSING => f64::NAN,
            code => least + step * f64::from(code),
        };
        pairs.chunks(2).map(code).collect()
    }

    #[test]
    fn rounded_values_are_within_half_a_step_and_missing_ones_are_known() {
        let values = [-3.0, 0.1, 7.25, f32::NAN, 1e-9];
        let found = codes(&rounded(&values));
        let half = 0.5 * (7.25 + 3.0) / 65_534.0;
        for (found, value) in found.iter().zip(values) {
            assert!(value.is_nan() && found.is_nan() || (found - f64::from(value)).abs() <= half * 1.000_1, "{value}");
        }
        assert_eq!(codes(&rounded(&[4.0, 4.0])), [4.0, 4.0]);
        assert!(codes(&rounded(&[f32::NAN, f32::INFINITY])).iter().all(|value| value.is_nan()));
        assert!(codes(&rounded(&[])).is_empty());
        let huge = codes(&rounded(&[f32::MIN, f32::MAX]));
        assert!(huge.iter().all(|value| value.abs() <= 1.000_01 * f64::from(f32::MAX)), "{huge:?}");
    }

    /// A plane of `side` × `side` points whose truth is the number of the point, and the values of its page.
    fn plane(side: usize, budget: usize) -> Value {
        let grid = Grid::Plane { rows: side, columns: side };
        let points = grid.points();
        let count: Vec<f32> = (1..=points).map(|point| point as f32).collect();
        let positions = (0..points).flat_map(|point| [(point / side) as f32, (point % side) as f32]).collect();
        let samples = Samples::on_points(grid, (2, positions), (1, count.clone()), (1, count.clone())).unwrap();
        let scene = scene(&Task::plain(grid, 2, 1, 1), &samples, &count, &[]);
        values(&scene, &Shared::of(std::slice::from_ref(&scene)), budget)
    }

    #[test]
    fn values_that_exceed_the_budget_are_thinned_evenly_and_keep_the_border() {
        let (whole, thin) = (plane(64, 1 << 20), plane(64, 20_000));
        assert_eq!(whole["layouts"][0]["plane"], json!([64, 64]));
        assert!(thin.to_string().len() < 24_000, "{}", thin.to_string().len());
        let [rows, columns] = [0, 1].map(|axis| thin["layouts"][0]["plane"][axis].as_u64().unwrap() as usize);
        let values = codes(&thin["fields"][1]["sets"][0]["values"]);
        assert!(values.len() == rows * columns && rows > 16, "{rows} x {columns}");
        let ends = [values[0], values[columns - 1], values[values.len() - 1]];
        assert_eq!(ends.map(f64::round), [1.0, 64.0, 4096.0]);
        let same = &thin["layouts"];
        assert_eq!(same.as_array().map(Vec::len), Some(1), "input, truth and prediction share their points");
    }

    #[test]
    fn the_times_in_a_page_are_few_and_include_those_that_are_drawn() {
        assert_eq!(times_of(5, &[0, 4]), [0, 1, 2, 3, 4]);
        let times = times_of(1000, &[0, 333, 666, 999]);
        assert!(times.len() <= TIMES + 2 && [0, 333, 666, 999].iter().all(|time| times.contains(time)), "{times:?}");
    }
}
