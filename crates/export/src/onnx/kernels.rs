//! The standard operators of ONNX in f64, by plain loops.

use super::evaluate::Array;
use rayon::prelude::*;

pub(super) fn each(array: &Array, function: fn(f64) -> f64) -> Array {
    Array::new(
        array.dims.clone(),
        array.values.par_iter().with_min_len(1 << 12).map(|&value| function(value)).collect(),
    )
}

fn strides(dims: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; dims.len()];
    for axis in (1..dims.len()).rev() {
        strides[axis - 1] = strides[axis] * dims[axis];
    }
    strides
}

/// Both dims aligned at the last axis, and the dims that they broadcast to.
fn aligned(one: &[usize], two: &[usize]) -> [Vec<usize>; 3] {
    let rank = one.len().max(two.len());
    let pad = |dims: &[usize]| [vec![1; rank - dims.len()], dims.to_vec()].concat();
    let [one, two] = [pad(one), pad(two)];
    let dims = one.iter().zip(&two).map(|(&one, &two)| if one == 1 { two } else { one }).collect();
    [one, two, dims]
}

/// Strides in which repeated axes have 0.
fn repeating(own: &[usize]) -> Vec<usize> {
    strides(own).into_iter().zip(own).map(|(stride, &extent)| if extent == 1 { 0 } else { stride }).collect()
}

/// Calls `visit` with the offsets of both operands for every index of `dims`, last axis fastest.
fn walk(dims: &[usize], one: &[usize], two: &[usize], mut visit: impl FnMut(usize, usize)) {
    let mut index = vec![0; dims.len()];
    let (mut left, mut right) = (0, 0);
    for _ in 0..dims.iter().product::<usize>() {
        visit(left, right);
        for axis in (0..dims.len()).rev() {
            index[axis] += 1;
            left += one[axis];
            right += two[axis];
            if index[axis] < dims[axis] {
                break;
            }
            left -= one[axis] * dims[axis];
            right -= two[axis] * dims[axis];
            index[axis] = 0;
        }
    }
}

pub(super) fn both(one: &Array, two: &Array, function: fn(f64, f64) -> f64) -> Array {
    if one.dims == two.dims {
        let values = one.values.iter().zip(&two.values).map(|(&x, &y)| function(x, y)).collect();
        return Array::new(one.dims.clone(), values);
    }
    let [left, right, dims] = aligned(&one.dims, &two.dims);
    let mut values = Vec::with_capacity(dims.iter().product());
    walk(&dims, &repeating(&left), &repeating(&right), |x, y| values.push(function(one.values[x], two.values[y])));
    Array::new(dims, values)
}

pub(super) fn reshape(array: &Array, shape: &[i64]) -> Option<Array> {
    let known: usize = shape.iter().filter(|&&extent| extent >= 0).map(|&extent| extent as usize).product();
    let rest = array.values.len().checked_div(known)?;
    let dims: Vec<usize> = shape.iter().map(|&extent| if extent < 0 { rest } else { extent as usize }).collect();
    (dims.iter().product::<usize>() == array.values.len()).then(|| Array::new(dims, array.values.clone()))
}

pub(super) fn transpose(array: &Array, order: &[i64]) -> Array {
    let (own, order) = (strides(&array.dims), order.iter().map(|&axis| axis as usize).collect::<Vec<_>>());
    let dims: Vec<usize> = order.iter().map(|&axis| array.dims[axis]).collect();
    let from: Vec<usize> = order.iter().map(|&axis| own[axis]).collect();
    let mut values = Vec::with_capacity(array.values.len());
    walk(&dims, &from, &vec![0; dims.len()], |place, _| values.push(array.values[place]));
    Array::new(dims, values)
}

/// `[outer, extent, inner]` around an axis.
fn around(dims: &[usize], axis: usize) -> [usize; 3] {
    [dims[..axis].iter().product(), dims[axis], dims[axis + 1..].iter().product()]
}

/// Rows of an axis in the order of a list.
fn rows(array: &Array, axis: usize, list: &[usize]) -> Array {
    let [outer, extent, inner] = around(&array.dims, axis);
    let mut values = Vec::with_capacity(outer * list.len() * inner);
    for block in 0..outer {
        for row in list {
            let start = (block * extent + row) * inner;
            values.extend_from_slice(&array.values[start..start + inner]);
        }
    }
    let mut dims = array.dims.clone();
    dims[axis] = list.len();
    Array::new(dims, values)
}

pub(super) fn slice(array: &Array, axis: usize, [start, end, step]: [i64; 3]) -> Array {
    let extent = array.dims[axis] as i64;
    let from_back = |place: i64| if place < 0 { place.saturating_add(extent) } else { place };
    let (low, high) = if step > 0 { (0, extent) } else { (-1, extent - 1) };
    let (start, end) = (from_back(start).clamp(low.max(0), high), from_back(end).clamp(low, high));
    let mut list = Vec::new();
    let mut place = start;
    while (step > 0 && place < end) || (step < 0 && place > end) {
        list.push(place as usize);
        place += step;
    }
    rows(array, axis, &list)
}

pub(super) fn gather(array: &Array, index: &Array, axis: usize) -> Array {
    let list: Vec<usize> = index.values.iter().map(|&row| row as usize).collect();
    let found = rows(array, axis, &list);
    let dims = [&array.dims[..axis], &index.dims, &array.dims[axis + 1..]].concat();
    Array::new(dims, found.values)
}

pub(super) fn pad(array: &Array, pads: &[i64]) -> Array {
    let rank = array.dims.len();
    let dims: Vec<usize> = (0..rank).map(|axis| array.dims[axis] + (pads[axis] + pads[rank + axis]) as usize).collect();
    let to = strides(&dims);
    let first: usize = (0..rank).map(|axis| pads[axis] as usize * to[axis]).sum();
    let mut values = vec![0.0; dims.iter().product()];
    walk(&array.dims, &to, &strides(&array.dims), |place, from| values[first + place] = array.values[from]);
    Array::new(dims, values)
}

pub(super) fn concatenate(pieces: &[&Array], axis: usize) -> Array {
    let mut dims = pieces[0].dims.clone();
    dims[axis] = pieces.iter().map(|piece| piece.dims[axis]).sum();
    let outer: usize = dims[..axis].iter().product();
    let mut values = Vec::with_capacity(dims.iter().product());
    for block in 0..outer {
        for piece in pieces {
            let length = piece.values.len() / outer;
            values.extend_from_slice(&piece.values[block * length..(block + 1) * length]);
        }
    }
    Array::new(dims, values)
}

pub(super) fn reduce(array: &Array, axes: &[i64], start: f64, function: fn(f64, f64) -> f64) -> Array {
    let mut dims = array.dims.clone();
    axes.iter().for_each(|&axis| dims[axis as usize] = 1);
    let mut values = vec![start; dims.iter().product()];
    walk(&array.dims, &strides(&array.dims), &repeating(&dims), |from, to| {
        values[to] = function(values[to], array.values[from]);
    });
    Array::new(dims, values)
}

/// The array without axes of extent 1.
pub(super) fn without(mut array: Array, axes: &[i64]) -> Array {
    let kept = (0..array.dims.len()).filter(|&axis| !axes.contains(&(axis as i64)));
    array.dims = kept.map(|axis| array.dims[axis]).collect();
    array
}

pub(super) fn first_largest(array: &Array, axis: usize) -> Array {
    let [outer, extent, inner] = around(&array.dims, axis);
    let mut values = Vec::with_capacity(outer * inner);
    for block in 0..outer {
        for column in 0..inner {
            let value = |row: usize| array.values[(block * extent + row) * inner + column];
            let best = (0..extent).fold(0, |best, row| if value(row) > value(best) { row } else { best });
            values.push(best as f64);
        }
    }
    let mut dims = array.dims.clone();
    dims[axis] = 1;
    Array::new(dims, values)
}

/// NumPy's matrix product of arrays with at least two axes.
pub(super) fn product(one: &Array, two: &Array) -> Array {
    let split = |dims: &[usize]| (dims[..dims.len() - 2].to_vec(), [dims[dims.len() - 2], dims[dims.len() - 1]]);
    let ((left, [rows, inner]), (right, [_, columns])) = (split(&one.dims), split(&two.dims));
    let [left, right, batch] = aligned(&left, &right);
    let mut places = Vec::new();
    walk(&batch, &repeating(&left), &repeating(&right), |x, y| places.push((x, y)));
    let dims = [&batch[..], &[rows, columns]].concat();
    let mut values = vec![0.0; dims.iter().product()];
    // Blocks of rows in parallel.
    let size = (1_usize << 16).div_ceil((inner * columns).max(1));
    let blocks: Vec<(usize, usize, &mut [f64])> = values
        .chunks_mut(rows * columns)
        .enumerate()
        .flat_map(|(matrix, out)| {
            out.chunks_mut(size * columns).enumerate().map(move |(part, out)| (matrix, part * size, out))
        })
        .collect();
    blocks.into_par_iter().for_each(|(matrix, first, out)| {
        let (x, y) = places[matrix];
        for (row, out) in out.chunks_mut(columns).enumerate() {
            let start = (x * rows + first + row) * inner;
            for (k, &factor) in one.values[start..start + inner].iter().enumerate() {
                let line = &two.values[(y * inner + k) * columns..][..columns];
                out.iter_mut().zip(line).for_each(|(sum, value)| *sum += factor * value);
            }
        }
    });
    Array::new(dims, values)
}

/// Channels in front: `[batch, in, rows, columns]` with `[out, in/groups, kernel rows, kernel columns]`.
pub(super) fn convolution(input: &Array, weight: &Array, stride: &[i64], pads: &[i64], groups: i64) -> Array {
    let [batch, channels, rows, columns] = [0, 1, 2, 3].map(|axis| input.dims[axis]);
    let [out, inner, height, width] = [0, 1, 2, 3].map(|axis| weight.dims[axis]);
    let [down, across, top, left, bottom, right] =
        [stride[0], stride[1], pads[0], pads[1], pads[2], pads[3]].map(|number| number as usize);
    let (tall, wide) = ((rows + top + bottom - height) / down + 1, (columns + left + right - width) / across + 1);
    let each = out / groups as usize;
    let mut values = vec![0.0; batch * out * tall * wide];
    values.par_chunks_mut(tall * wide).enumerate().for_each(|(plane, result)| {
        let (sample, channel) = (plane / out, plane % out);
        for c in 0..inner {
            let from = &input.values[(sample * channels + channel / each * inner + c) * rows * columns..];
            for (u, v) in (0..height).flat_map(|u| (0..width).map(move |v| (u, v))) {
                let factor = weight.values[((channel * inner + c) * height + u) * width + v];
                for (i, j) in (0..tall).flat_map(|i| (0..wide).map(move |j| (i, j))) {
                    let (row, column) = ((i * down + u).wrapping_sub(top), (j * across + v).wrapping_sub(left));
                    if row < rows && column < columns {
                        result[i * wide + j] += factor * from[row * columns + column];
                    }
                }
            }
        }
    });
    Array::new(vec![batch, out, tall, wide], values)
}

/// Over the last axis.
pub(super) fn softmax(array: &Array) -> Array {
    let mut found = array.clone();
    for row in found.values.chunks_mut(array.dims.last().copied().unwrap_or(1)) {
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        row.iter_mut().for_each(|value| *value = (*value - largest).exp());
        let sum: f64 = row.iter().sum();
        row.iter_mut().for_each(|value| *value /= sum);
    }
    found
}

/// Over the last axis.
pub(super) fn layer_norm(array: &Array, weight: &[f64], bias: &[f64], epsilon: f64) -> Array {
    let mut found = array.clone();
    for row in found.values.chunks_mut(weight.len()) {
        let count = row.len() as f64;
        let mean = row.iter().sum::<f64>() / count;
        let variance = row.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        let scale = (variance + epsilon).sqrt().recip();
        for ((value, weight), bias) in row.iter_mut().zip(weight).zip(bias) {
            *value = (*value - mean) * scale * weight + bias;
        }
    }
    found
}
