//! GMRES (Saad and Schultz 1986) with a preconditioner from the right, for operators known by their action alone.

/// One vector of four values per node.
pub type Field = Vec<[f64; 4]>;

/// x with |b − A x| ≤ `tolerance` |b|, or the best after `most` steps; `apply` is A, `precondition` nearly A⁻¹.
pub fn gmres(
    right_side: &Field,
    tolerance: f64,
    most: usize,
    mut apply: impl FnMut(&Field) -> Field,
    precondition: impl Fn(&mut Field),
) -> Field {
    let size = norm(right_side);
    let mut basis = vec![scaled(right_side, 1.0 / size)];
    let mut columns: Vec<Vec<f64>> = Vec::new(); // the triangle that the rotations leave
    let mut rotations: Vec<[f64; 2]> = Vec::new();
    let mut rest = vec![size];
    while columns.len() < most && rest[columns.len()].abs() > tolerance * size {
        let step = columns.len();
        let mut direction = basis[step].clone();
        precondition(&mut direction);
        let mut image = apply(&direction);
        let mut column = Vec::with_capacity(step + 2);
        for vector in &basis {
            let share = dot(vector, &image);
            add(&mut image, vector, -share);
            column.push(share);
        }
        let length = norm(&image);
        column.push(length);
        for (k, [cosine, sine]) in rotations.iter().enumerate() {
            let (upper, lower) = (column[k], column[k + 1]);
            (column[k], column[k + 1]) = (cosine * upper + sine * lower, cosine * lower - sine * upper);
        }
        let radius = column[step].hypot(length);
        let [cosine, sine] = [column[step] / radius, length / radius];
        rotations.push([cosine, sine]);
        column[step] = radius;
        column.truncate(step + 1);
        columns.push(column);
        rest.push(-sine * rest[step]);
        rest[step] *= cosine;
        basis.push(scaled(&image, 1.0 / length));
    }
    let mut shares = rest[..columns.len()].to_vec();
    for k in (0..shares.len()).rev() {
        shares[k] /= columns[k][k];
        for row in 0..k {
            shares[row] -= columns[k][row] * shares[k];
        }
    }
    let mut solution = vec![[0.0; 4]; right_side.len()];
    for (vector, share) in basis.iter().zip(shares) {
        add(&mut solution, vector, share);
    }
    precondition(&mut solution);
    solution
}

/// Euclidean norm of all values.
pub fn norm(field: &Field) -> f64 {
    dot(field, field).sqrt()
}

fn dot(one: &Field, other: &Field) -> f64 {
    let mut sums = [0.0; 4];
    for (a, b) in one.iter().zip(other) {
        for k in 0..4 {
            sums[k] += a[k] * b[k];
        }
    }
    sums.iter().sum()
}

fn add(sum: &mut Field, other: &Field, factor: f64) {
    for (value, other) in sum.iter_mut().zip(other) {
        for k in 0..4 {
            value[k] += factor * other[k];
        }
    }
}

fn scaled(field: &Field, factor: f64) -> Field {
    field.iter().map(|values| values.map(|value| factor * value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The difference operator of advection and diffusion on a chain, and its exact diagonal.
    fn apply(field: &Field) -> Field {
        let at = |node: usize, k: usize| field.get(node).map_or(0.0, |values| values[k]);
        let row = |node: usize, k: usize| {
            (3.0 + k as f64) * at(node, k) - 1.8 * at(node.wrapping_sub(1), k) - 0.7 * at(node + 1, k)
        };
        (0..field.len()).map(|node| [0, 1, 2, 3].map(|k| row(node, k))).collect()
    }

    fn divide(field: &mut Field) {
        field.iter_mut().for_each(|values| (0..4).for_each(|k| values[k] /= 3.0 + k as f64));
    }

    #[test]
    fn the_residual_falls_below_the_tolerance() {
        let wanted: Field = (0..40).map(|node| [0, 1, 2, 3].map(|k| ((node * 4 + k) as f64).cos())).collect();
        let right_side = apply(&wanted);
        for tolerance in [1e-2, 1e-6, 1e-12] {
            let found = gmres(&right_side, tolerance, 100, apply, divide);
            let mut rest = apply(&found);
            add(&mut rest, &right_side, -1.0);
            let relative = norm(&rest) / norm(&right_side);
            assert!(relative < 1.01 * tolerance, "{relative:e} for {tolerance:e}");
        }
    }

    #[test]
    fn an_exact_preconditioner_needs_one_step_and_nothing_needs_none() {
        let mut applied = 0;
        let diagonal = |field: &Field| {
            applied += 1;
            field.iter().map(|values| values.map(|value| 2.0 * value)).collect()
        };
        let right_side = vec![[1.0, -2.0, 3.0, 0.5]; 3];
        let mut found = gmres(&right_side, 1e-10, 9, diagonal, |field| {
            field.iter_mut().flatten().for_each(|value| *value /= 2.0);
        });
        add(&mut found, &right_side, -0.5);
        assert!(applied == 1 && norm(&found) < 1e-14, "{applied} steps, error {:e}", norm(&found));
        let still = vec![[0.0; 4]; 5];
        assert_eq!(gmres(&still, 1e-10, 9, apply, divide), still);
    }
}
