//! GMRES (Saad and Schultz 1986) with right preconditioning; it needs the product A x, not the matrix A.

/// One vector of four values per node.
pub type Field = Vec<[f64; 4]>;

/// x with |b − A x| ≤ `tolerance` |b|, or the best x after `most_steps`. `apply` multiplies by A, and `precondition` by
/// an approximation of A⁻¹.
pub fn gmres(
    right_side: &Field,
    tolerance: f64,
    most_steps: usize,
    mut apply: impl FnMut(&Field) -> Field,
    precondition: impl Fn(&mut Field),
) -> Field {
    let size = norm(right_side);
    let mut basis = vec![scaled(right_side, 1.0 / size)];
    let mut columns: Vec<Vec<f64>> = Vec::new(); // upper triangle of the rotated Hessenberg matrix
    let mut rotations: Vec<[f64; 2]> = Vec::new();
    let mut rotated = vec![size]; // the right side |b| e₁ after the rotations
    while columns.len() < most_steps && rotated[columns.len()].abs() > tolerance * size {
        let step = columns.len();
        let mut direction = basis[step].clone();
        precondition(&mut direction);
        let mut image = apply(&direction);
        let mut column = Vec::with_capacity(step + 2);
        for vector in &basis {
            let projection = dot(vector, &image);
            add(&mut image, vector, -projection);
            column.push(projection);
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
        rotated.push(-sine * rotated[step]);
        rotated[step] *= cosine;
        basis.push(scaled(&image, 1.0 / length));
    }
    let mut coefficients = rotated[..columns.len()].to_vec();
    for k in (0..coefficients.len()).rev() {
        coefficients[k] /= columns[k][k];
        for row in 0..k {
            coefficients[row] -= columns[k][row] * coefficients[k];
        }
    }
    let mut solution = vec![[0.0; 4]; right_side.len()];
    for (vector, coefficient) in basis.iter().zip(coefficients) {
        add(&mut solution, vector, coefficient);
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

    /// A difference operator of advection and diffusion on a chain.
    fn apply(field: &Field) -> Field {
        let at = |node: usize, k: usize| field.get(node).map_or(0.0, |values| values[k]);
        let row = |node: usize, k: usize| {
            (3.0 + k as f64) * at(node, k) - 1.8 * at(node.wrapping_sub(1), k) - 0.7 * at(node + 1, k)
        };
        (0..field.len()).map(|node| [0, 1, 2, 3].map(|k| row(node, k))).collect()
    }

    /// Divides by the diagonal of [`apply`].
    fn divide(field: &mut Field) {
        field.iter_mut().for_each(|values| (0..4).for_each(|k| values[k] /= 3.0 + k as f64));
    }

    #[test]
    fn the_residual_falls_below_the_tolerance() {
        let wanted: Field = (0..40).map(|node| [0, 1, 2, 3].map(|k| ((node * 4 + k) as f64).cos())).collect();
        let right_side = apply(&wanted);
        for tolerance in [1e-2, 1e-6, 1e-12] {
            let found = gmres(&right_side, tolerance, 100, apply, divide);
            let mut residual = apply(&found);
            add(&mut residual, &right_side, -1.0);
            let relative = norm(&residual) / norm(&right_side);
            assert!(relative < 1.01 * tolerance, "{relative:e} for {tolerance:e}");
        }
    }

    #[test]
    fn an_exact_preconditioner_needs_one_step_and_a_zero_right_side_needs_no_step() {
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
        let zero = vec![[0.0; 4]; 5];
        assert_eq!(gmres(&zero, 1e-10, 9, apply, divide), zero);
    }
}
