//! Axes: how a kernel walks over points. A kernel that treats each point by itself visits its elements in the order
//!
//! element = ((b·X + x)·P + n)·Y + y,  b < B, n < P,
//!
//! so that its axes, cut at these products, belong to the batch, to the points, or to a point. A buffer whose elements lie in that
//! order is described by X and Y alone.

use crate::shape::Layout;

/// The points of a program: B samples of P points each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Points {
    pub(super) batch: usize,
    pub(super) points: usize,
}

impl Points {
    pub(super) fn count(self) -> usize {
        self.batch * self.points
    }
}

/// X and Y of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) before: usize,
    pub(super) after: usize,
}

impl Order {
    /// Elements of the buffer from one x to the next.
    fn across(self, points: usize) -> usize {
        points * self.after
    }

    /// Elements of `points` points.
    pub(super) fn length(self, points: usize) -> usize {
        self.before * points * self.after
    }
}

/// Most elements of a point that are compared one by one.
const LARGEST_POINT: usize = 1 << 14;

/// The axes of a kernel, cut where batch, points and the elements of a point meet.
#[derive(Clone, Debug)]
pub(super) struct Cuts {
    extents: Vec<usize>,
    roles: Vec<Role>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Batch,
    Before,
    Point,
    After,
}

impl Cuts {
    /// Cuts the axes `dims` with X = `before`; `None` if an axis does not divide there.
    pub(super) fn new(dims: &[usize], Points { batch, points }: Points, before: usize) -> Option<Cuts> {
        let count: usize = dims.iter().product();
        let outer = batch.checked_mul(before)?.checked_mul(points)?;
        if outer == 0 || !count.is_multiple_of(outer) {
            return None;
        }
        let after = count / outer;
        let [sample, across] = [before * points * after, points * after];
        let mut cuts = vec![sample, across, after, 1];
        let mut rest = count;
        for extent in dims {
            rest /= extent;
            cuts.push(rest);
        }
        cuts.sort_unstable_by(|a, b| b.cmp(a));
        cuts.dedup();
        let (mut extents, mut roles, mut above) = (Vec::new(), Vec::new(), count);
        for cut in cuts.into_iter().filter(|&cut| cut < count) {
            if above % cut != 0 {
                return None;
            }
            extents.push(above / cut);
            roles.push(match cut {
                _ if cut >= sample => Role::Batch,
                _ if cut >= across => Role::Before,
                _ if cut >= after => Role::Point,
                _ => Role::After,
            });
            above = cut;
        }
        if dims.last() == Some(&1) {
            extents.push(1); // a row of one element is still a row
            roles.push(Role::After);
        }
        Some(Cuts { extents, roles })
    }

    /// Elements of a point before the points, X.
    pub(super) fn before(&self) -> usize {
        self.extents
            .iter()
            .zip(&self.roles)
            .filter(|(_, role)| **role == Role::Before)
            .map(|(extent, _)| extent)
            .product()
    }

    /// Elements of a point behind the points, Y.
    pub(super) fn after(&self) -> usize {
        self.extents
            .iter()
            .zip(&self.roles)
            .filter(|(_, role)| **role == Role::After)
            .map(|(extent, _)| extent)
            .product()
    }

    /// How a layout with the extents of the kernel walks.
    pub(super) fn walk(&self, layout: &Layout) -> Option<Walk> {
        let layout = layout.reshaped(&self.extents)?;
        let axes = |wanted: Role| -> Vec<(usize, isize)> {
            let all = self.extents.iter().copied().zip(layout.strides.iter().copied()).zip(&self.roles);
            all.filter(|(_, role)| **role == wanted).map(|(axis, _)| axis).collect()
        };
        let [batch, point] = [one_stride(&axes(Role::Batch))?, one_stride(&axes(Role::Point))?];
        Some(Walk { offset: layout.offset, batch, point, before: axes(Role::Before), after: axes(Role::After) })
    }
}

/// The stride of axes that follow one another without a gap; 0 if there are none.
pub(super) fn one_stride(axes: &[(usize, isize)]) -> Option<isize> {
    let even = axes.windows(2).all(|pair| pair[0].1 == pair[1].1 * pair[1].0 as isize);
    even.then(|| axes.last().map_or(0, |axis| axis.1))
}

/// How an access moves from sample to sample, from point to point, and inside a point.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Walk {
    pub(super) offset: isize,
    pub(super) batch: isize,
    pub(super) point: isize,
    /// Extents and strides of x.
    pub(super) before: Vec<(usize, isize)>,
    /// Extents and strides of y.
    pub(super) after: Vec<(usize, isize)>,
}

impl Walk {
    /// Whether the access to each point stays inside the memory of that point.
    pub(super) fn stays(&self, order: Order, Points { batch, points }: Points) -> bool {
        let across = order.across(points) as isize;
        let after = order.after as isize;
        let moves_along = (batch == 1 || self.batch == across * order.before as isize) && self.point == after;
        moves_along
            && self.inside().is_some_and(|addresses| {
                addresses
                    .into_iter()
                    .all(|address| address >= 0 && address / across < order.before as isize && address % across < after)
            })
    }

    /// The order of a buffer of `length` elements that this access writes first.
    pub(super) fn order(&self, length: usize, points: Points) -> Option<Order> {
        let after = usize::try_from(self.point).ok().filter(|&after| after > 0)?;
        let before = length / points.count() / after;
        let order = Order { before, after };
        (before > 0 && points.batch * order.length(points.points) == length && self.stays(order, points))
            .then_some(order)
    }

    /// Addresses of the elements of the first point.
    fn inside(&self) -> Option<Vec<isize>> {
        let axes = || self.before.iter().chain(&self.after);
        let count = axes().map(|axis| axis.0).fold(1, usize::saturating_mul);
        if count > LARGEST_POINT {
            return None;
        }
        let mut addresses = vec![self.offset];
        for &(extent, stride) in axes().filter(|axis| axis.1 != 0) {
            addresses =
                addresses.iter().flat_map(|start| (0..extent as isize).map(move |i| start + i * stride)).collect();
        }
        Some(addresses)
    }

    /// The same access to memory that holds a block of `rows` points alone; `None` if strides cannot express that.
    pub(super) fn within_block(&self, order: Order, Points { points, .. }: Points, rows: usize) -> Option<Walk> {
        let (across, after) = (order.across(points) as isize, order.after as isize);
        let narrow = rows as isize * after;
        let stride = |stride: isize| match (stride / across, stride % across) {
            (x, 0) if stride >= 0 => Some(x * narrow),
            (0, y) if (0..after).contains(&y) => Some(y),
            _ => None,
        };
        let axes = |axes: &[(usize, isize)]| {
            axes.iter().map(|&(extent, step)| Some((extent, stride(step)?))).collect::<Option<Vec<_>>>()
        };
        let offset = self.offset / across * narrow + self.offset % across;
        Some(Walk { offset, batch: 0, point: after, before: axes(&self.before)?, after: axes(&self.after)? })
    }
}
