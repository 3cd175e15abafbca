//! The inverse Cholesky factor in standard operators, in double precision as on every device: column by column.
//!
//! The jitter is the first of ε, 10 ε, …, 10⁹ ε, or none, that makes the matrix positive definite. So all eleven matrices are
//! factored at once, and the one that is chosen once more. Where all fail, the jitter is NaN.

use super::builder::Builder;
use super::schema::{AttributeProto, DOUBLE, FLOAT};

/// Jitters that are tried after none.
const TRIES: i32 = 10;

/// Λ⁻¹ of `[matrices, side, side]`.
pub(crate) fn inverse_cholesky(builder: &mut Builder, value: &str, side: usize, jitter: f64) -> String {
    let matrix = builder.cast(value, DOUBLE);
    let shifts: Vec<f64> = std::iter::once(0.0).chain((0..TRIES).map(|power| jitter * 10_f64.powi(power))).collect();
    let identity: Vec<f64> = (0..side * side).map(|place| f64::from(u8::from(place / side == place % side))).collect();
    let identity = builder.doubles(&identity, &[side, side]);
    let all = builder.doubles(&shifts, &[1, shifts.len(), 1, 1]);
    let shifted = builder.op("Mul", &[&all, &identity], &[]);
    let tried = builder.reshape(&matrix, &[-1, 1, side as i64, side as i64]);
    let tried = builder.op("Add", &[&tried, &shifted], &[]); // [matrices, 11, side, side]
    let fine = columns(builder, &tried, side).1;
    let first = [AttributeProto::int("axis", 1), AttributeProto::int("keepdims", 1)];
    let chosen = builder.op("ArgMax", &[&fine], &first); // the first of the largest
    let list = builder.doubles(&shifts, &[shifts.len()]);
    let shift = builder.op("Gather", &[&list, &chosen], &[AttributeProto::int("axis", 0)]);
    let any =
        builder.op("ReduceMax", &[&fine], &[AttributeProto::ints("axes", &[1]), AttributeProto::int("keepdims", 1)]);
    let half = builder.doubles(&[0.5], &[]);
    let any = builder.op("Greater", &[&any, &half], &[]);
    let nan = builder.doubles(&[f64::NAN], &[]);
    let shift = builder.op("Where", &[&any, &shift, &nan], &[]);
    let shift = builder.op("Mul", &[&shift, &identity], &[]);
    let one = builder.reshape(&matrix, &[-1, 1, side as i64, side as i64]);
    let one = builder.op("Add", &[&one, &shift], &[]); // [matrices, 1, side, side]
    let factor = columns(builder, &one, side).0;
    let names: Vec<&str> = factor.iter().map(String::as_str).collect();
    let factor = builder.op("Concat", &names, &[AttributeProto::int("axis", 3)]);
    let inverse = inverse(builder, &factor, &identity, side);
    let inverse = builder.cast(&inverse, FLOAT);
    builder.reshape(&inverse, &[-1, side as i64, side as i64])
}

/// The columns of Λ, each `[matrices, tries, side, 1]`, and whether all pivots are positive and finite: 1 or 0.
fn columns(builder: &mut Builder, matrix: &str, side: usize) -> (Vec<String>, String) {
    let (zero, infinity) = (builder.doubles(&[0.0], &[]), builder.doubles(&[f64::INFINITY], &[]));
    let (mut rest, mut columns) = (matrix.to_owned(), Vec::new());
    let mut fine: Option<String> = None;
    for step in 0..side {
        let column = builder.slice(&rest, 3, [0, 1, 1]);
        let pivot = builder.slice(&column, 2, [0, 1, 1]);
        let positive = builder.op("Greater", &[&pivot, &zero], &[]);
        let finite = builder.op("Less", &[&pivot, &infinity], &[]);
        let good = builder.op("And", &[&positive, &finite], &[]);
        let good = builder.cast(&good, DOUBLE);
        fine = Some(match fine {
            Some(before) => builder.op("Mul", &[&before, &good], &[]),
            None => good,
        });
        let root = builder.op("Sqrt", &[&pivot], &[]);
        let column = builder.op("Div", &[&column, &root], &[]);
        columns.push(builder.pad(&column, 4, 2, [step, 0]));
        if step + 1 < side {
            let end = (side - step) as i64;
            let below = builder.slice(&column, 2, [1, end, 1]);
            let across = builder.transpose(&below, &[0, 1, 3, 2]);
            let product = builder.op("Mul", &[&below, &across], &[]);
            let left = builder.slice(&rest, 2, [1, end, 1]);
            let left = builder.slice(&left, 3, [1, end, 1]);
            rest = builder.op("Sub", &[&left, &product], &[]);
        }
    }
    let fine = fine.unwrap_or_else(|| builder.doubles(&[1.0], &[1, 1, 1, 1]));
    (columns, fine)
}

/// Λ⁻¹ row by row: wᵢ = (eᵢ − Σ_{k<i} Λᵢₖ wₖ) / Λᵢᵢ.
fn inverse(builder: &mut Builder, factor: &str, identity: &str, side: usize) -> String {
    let mut known: Option<String> = None; // [matrices, 1, rows so far, side]
    for row in 0..side as i64 {
        let line = builder.slice(factor, 2, [row, row + 1, 1]);
        let pivot = builder.slice(&line, 3, [row, row + 1, 1]);
        let unit = builder.slice(identity, 0, [row, row + 1, 1]);
        let next = match &known {
            Some(above) => {
                let left = builder.slice(&line, 3, [0, row, 1]);
                let sum = builder.op("MatMul", &[&left, above], &[]);
                builder.op("Sub", &[&unit, &sum], &[])
            }
            None => unit,
        };
        let next = builder.op("Div", &[&next, &pivot], &[]);
        known = Some(match known {
            Some(above) => builder.op("Concat", &[&above, &next], &[AttributeProto::int("axis", 2)]),
            None => next,
        });
    }
    known.unwrap_or_else(|| factor.to_owned())
}
