//! Runs the loops of a C program as they are, on the memory that the program will have.

use super::kernel::{Expression, Kernel, Recurrence, Slices, Window};
use super::memory::{Buffer, Place};
use super::view::{View, merged};
use lamo::tensor::{Map, for_each_index};

/// The arrays of a run.
pub(crate) struct Memory<'a> {
    pub(crate) buffers: &'a [Buffer],
    pub(crate) weights: &'a [f32],
    pub(crate) inputs: &'a [&'a [f32]],
    pub(crate) outputs: Vec<Vec<f32>>,
    pub(crate) work: Vec<f32>,
}

impl Memory<'_> {
    /// The elements of a buffer.
    fn buffer(&self, buffer: usize) -> &[f32] {
        let Buffer { length, place } = &self.buffers[buffer];
        match place {
            Place::Input(number) => self.inputs[*number],
            Place::Output(number) => &self.outputs[*number],
            Place::Weights(start) => &self.weights[*start..start + length],
            Place::Work(start) => &self.work[*start..start + length],
        }
    }

    fn all(&self, view: &View) -> &[f32] {
        &self.buffer(view.buffer)[view.offset as usize..]
    }

    /// Writes values to a view in its order.
    fn write(&mut self, view: &View, values: &[f32]) {
        let Buffer { length, place } = &self.buffers[view.buffer];
        let to: &mut [f32] = match place {
            Place::Output(number) => &mut self.outputs[*number],
            Place::Work(start) => &mut self.work[*start..start + length],
            Place::Input(_) | Place::Weights(_) => unreachable!("no loop writes to them"),
        };
        let mut next = 0;
        for_each_index(&view.dims, |index| {
            to[view.at(index)] = values[next];
            next += 1;
        });
    }

    /// Runs one loop.
    pub(crate) fn run(&mut self, kernel: &Kernel) {
        match kernel {
            Kernel::Loop { out, expression, operands } => {
                let values = self.elements(&out.dims, expression, operands);
                self.write(out, &values);
            }
            Kernel::Reduce { out, expression, operands, first, end, sum } => {
                let dims = &operands[0].dims;
                let values = self.elements(dims, expression, operands);
                let found = reduced(&values, dims, [*first, *end], *sum);
                self.write(out, &found);
            }
            Kernel::Product { out, left, right } => {
                let values = self.product(left, right);
                self.write(out, &values);
            }
            Kernel::Convolution { out, input, weight, window } => {
                let values = convolution(self.all(input), self.all(weight), window);
                self.write(out, &values);
            }
            Kernel::Collect { out, operands, slices } => {
                let values = membership(operands.each_ref().map(|view| self.all(view)), slices, true);
                self.write(out, &values);
            }
            Kernel::Spread { out, operands, slices } => {
                let values = membership(operands.each_ref().map(|view| self.all(view)), slices, false);
                self.write(out, &values);
            }
            Kernel::Scan { out, state, initial, operands, scan } => {
                let initial = initial.as_ref().map(|view| self.all(view)[..state.count()].to_vec());
                let mut last = initial.unwrap_or_else(|| vec![0.0; state.count()]);
                let values = recurrence(operands.each_ref().map(|view| self.all(view)), scan, &mut last);
                self.write(out, &values);
                self.write(state, &last);
            }
            Kernel::InverseCholesky { out, matrix, jitter } => {
                let (side, values) = (matrix.dims[2], &self.all(matrix)[..matrix.count()]);
                let found: Vec<f32> =
                    values.chunks(side * side).flat_map(|one| inverse_cholesky(one, side, *jitter)).collect();
                self.write(out, &found);
            }
            Kernel::Gather { out, input, axis, rows } => {
                let inner: usize = input.dims[axis + 1..].iter().product();
                let blocks = self.all(input)[..input.count()].chunks(input.dims[*axis] * inner);
                let row = |block: &[f32], row: u32| block[row as usize * inner..][..inner].to_vec();
                let values: Vec<f32> =
                    blocks.flat_map(|block| rows.iter().flat_map(|&number| row(block, number))).collect();
                self.write(out, &values);
            }
            Kernel::Zero { out } => self.write(out, &vec![0.0; out.count()]),
        }
    }

    /// The values of an expression in the order of `dims`.
    fn elements(&self, dims: &[usize], expression: &Expression, operands: &[View]) -> Vec<f32> {
        let views = merged(&if operands.is_empty() { vec![View::whole(0, dims)] } else { operands.to_vec() });
        let (inner, outer) = views[0].dims.split_last().map_or((1, &[][..]), |(inner, outer)| (*inner, outer));
        let mut values = Vec::with_capacity(dims.iter().product());
        for_each_index(outer, |index| {
            let rows: Vec<(&[f32], usize, isize)> = views
                .iter()
                .map(|view| {
                    let first = view.at(&[index, &[0]].concat());
                    (self.buffer(view.buffer), first, view.strides.last().copied().unwrap_or(0))
                })
                .collect();
            values.extend(evaluated(expression, &rows, inner));
        });
        values
    }

    fn product(&self, left: &View, right: &View) -> Vec<f32> {
        let batch = left.dims.len() - 2;
        let [rows, inner, columns] = [left.dims[batch], left.dims[batch + 1], right.dims[batch + 1]];
        let (one, two) = (self.buffer(left.buffer), self.buffer(right.buffer));
        let mut values = Vec::new();
        for_each_index(&left.dims[..batch], |index| {
            for row in 0..rows {
                let mut sums = vec![0.0_f32; columns];
                for k in 0..inner {
                    let factor = one[left.at(&[index, &[row, k]].concat())];
                    let line = &two[right.at(&[index, &[k, 0]].concat())..][..columns];
                    sums.iter_mut().zip(line).for_each(|(sum, value)| *sum += factor * value);
                }
                values.extend(sums);
            }
        });
        values
    }
}

/// One row of an expression.
fn evaluated(expression: &Expression, rows: &[(&[f32], usize, isize)], length: usize) -> Vec<f32> {
    match expression {
        Expression::Number(number) => vec![*number; length],
        Expression::Load(operand) => {
            let (values, first, stride) = rows[*operand];
            (0..length as isize).map(|k| values[(first as isize + k * stride) as usize]).collect()
        }
        Expression::Map(map, operands) => {
            let parts: Vec<Vec<f32>> = operands.iter().map(|operand| evaluated(operand, rows, length)).collect();
            let value = |part: usize, k: usize| parts.get(part).map_or(0.0, |part| part[k]);
            let plain =
                |function: fn(f32, f32) -> f32| (0..length).map(|k| function(parts[0][k], parts[1][k])).collect();
            match map {
                Map::Add => plain(|x, y| x + y),
                Map::Subtract => plain(|x, y| x - y),
                Map::Multiply => plain(|x, y| x * y),
                Map::Divide => plain(|x, y| x / y),
                _ => {
                    let at = |k: usize| map.evaluate(value(0, k).into(), value(1, k).into(), value(2, k).into()) as f32;
                    (0..length).map(at).collect()
                }
            }
        }
    }
}

fn reduced(values: &[f32], dims: &[usize], [first, end]: [usize; 2], sum: bool) -> Vec<f32> {
    let [outer, run, inner] =
        [&dims[..first], &dims[first..end], &dims[end..]].map(|part| part.iter().product::<usize>());
    let mut found = Vec::with_capacity(outer * inner);
    for place in 0..outer * inner {
        let elements = (0..run).map(|k| values[(place / inner * run + k) * inner + place % inner]);
        found.push(match sum {
            true => elements.map(f64::from).sum::<f64>() as f32,
            false => elements.fold(f32::NEG_INFINITY, |one, two| if one > two { one } else { two }),
        });
    }
    found
}

fn convolution(input: &[f32], weight: &[f32], window: &Window) -> Vec<f32> {
    let Window { input: [rows, columns, channels], output: [tall, wide, out], kernel, stride, before, groups } =
        *window;
    let (inner, each) = (channels / groups, out / groups);
    let mut values = vec![0.0; tall * wide * out];
    for (place, sums) in values.chunks_mut(out).enumerate() {
        for (u, v) in (0..kernel[0]).flat_map(|u| (0..kernel[1]).map(move |v| (u, v))) {
            let row = (place / wide * stride[0] + u).wrapping_sub(before[0]);
            let column = (place % wide * stride[1] + v).wrapping_sub(before[1]);
            if row >= rows || column >= columns {
                continue;
            }
            let from = &input[(row * columns + column) * channels..][..channels];
            for c in 0..inner {
                let line = &weight[((u * kernel[1] + v) * inner + c) * out..][..out];
                for (o, sum) in sums.iter_mut().enumerate() {
                    *sum += from[o / each * inner + c] * line[o];
                }
            }
        }
    }
    values
}

fn membership([queries, keys, offsets, moved]: [&[f32]; 4], shape: &Slices, collect: bool) -> Vec<f32> {
    let Slices { points, heads, slices, channels, width } = *shape;
    let mut found = vec![0.0; if collect { heads * slices * (width + 1) } else { points * heads * width }];
    for place in 0..points * heads {
        let head = place % heads;
        let mut weights = offsets[head * slices..][..slices].to_vec();
        for c in 0..channels {
            let line = &keys[(head * channels + c) * slices..][..slices];
            weights.iter_mut().zip(line).for_each(|(weight, key)| *weight += queries[place * channels + c] * key);
        }
        let largest = weights.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        weights.iter_mut().for_each(|weight| *weight = (*weight - largest).exp());
        let sum: f32 = weights.iter().sum();
        for (slice, weight) in weights.iter().map(|weight| weight / sum).enumerate() {
            for p in 0..width {
                if collect {
                    found[(head * slices + slice) * (width + 1) + p] += weight * moved[place * width + p];
                } else {
                    found[place * width + p] += weight * moved[(head * slices + slice) * width + p];
                }
            }
            if collect {
                found[(head * slices + slice) * (width + 1) + width] += weight;
            }
        }
    }
    found
}

fn recurrence([signal, log_decay, gain, write, read]: [&[f32]; 5], scan: &Recurrence, state: &mut [f32]) -> Vec<f32> {
    let Recurrence { tokens, heads, channels, groups, states, directions, ref order } = *scan;
    let all = directions * heads;
    let mut found = vec![0.0; tokens * heads * channels];
    for (head, state) in state.chunks_mut(states * channels).enumerate() {
        let group = head * groups / all;
        for step in 0..tokens {
            let token = order[head / heads * tokens + step] as usize;
            let (decay, gain) = (log_decay[token * all + head].exp(), gain[token * all + head]);
            let x = &signal[(token * heads + head % heads) * channels..][..channels];
            let y = &mut found[(token * heads + head % heads) * channels..][..channels];
            for (n, row) in state.chunks_mut(channels).enumerate() {
                let place = (token * groups + group) * states + n;
                let (input, output) = (gain * write[place], read[place]);
                for ((h, x), y) in row.iter_mut().zip(x).zip(y.iter_mut()) {
                    *h = decay * *h + input * x;
                    *y += *h * output;
                }
            }
        }
    }
    found
}

/// Λ⁻¹ of one matrix.
fn inverse_cholesky(matrix: &[f32], side: usize, jitter: f64) -> Vec<f32> {
    let mut factor = vec![0.0_f64; side * side];
    for attempt in 0..=10 {
        let shift = if attempt == 0 { 0.0 } else { jitter * 10_f64.powi(attempt - 1) };
        let mut fine = true;
        for row in 0..side {
            for column in 0..=row {
                let known: f64 = (0..column).map(|k| factor[row * side + k] * factor[column * side + k]).sum();
                let rest = f64::from(matrix[row * side + column]) + if row == column { shift } else { 0.0 } - known;
                fine &= row != column || (rest > 0.0 && rest.is_finite());
                factor[row * side + column] =
                    if row == column { rest.sqrt() } else { rest / factor[column * side + column] };
            }
        }
        if fine {
            break;
        }
        if attempt == 10 {
            return vec![f32::NAN; side * side];
        }
    }
    let mut inverse = vec![0.0_f64; side * side];
    for column in 0..side {
        for row in column..side {
            let known: f64 = (column..row).map(|k| factor[row * side + k] * inverse[k * side + column]).sum();
            inverse[row * side + column] = (f64::from(u8::from(row == column)) - known) / factor[row * side + row];
        }
    }
    inverse.into_iter().map(|value| value as f32).collect()
}
