//! A volume as pictures: three cuts through its middle, each a plane across one axis.

/// One cut.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cut {
    /// `row 16`, `column 16` or `layer 16`.
    pub(crate) name: String,
    /// What runs down and across in the picture.
    pub(crate) axes: [&'static str; 2],
    /// Rows and columns of the picture.
    pub(crate) plane: [usize; 2],
    /// The point of the volume at each place of the picture, row by row.
    pub(crate) points: Vec<usize>,
}

/// The cuts across rows, columns and layers of a volume of these extents.
pub(crate) fn cuts(extents: [usize; 3]) -> [Cut; 3] {
    let strides = [extents[1] * extents[2], extents[2], 1];
    const NAMES: [&str; 3] = ["row", "column", "layer"];
    [(0, [1, 2]), (1, [0, 2]), (2, [0, 1])].map(|(axis, [down, across])| {
        let (middle, plane) = (extents[axis] / 2, [extents[down], extents[across]]);
        let point = |place: usize| {
            middle * strides[axis] + place / plane[1] * strides[down] + place % plane[1] * strides[across]
        };
        let (name, axes) = (format!("{} {middle}", NAMES[axis]), [NAMES[down], NAMES[across]]);
        Cut { name, axes, plane, points: (0..plane[0] * plane[1]).map(point).collect() }
    })
}

/// What the pictures of a volume show, in words.
pub(crate) fn note(extents: [usize; 3]) -> String {
    let [rows, columns, layers] = extents;
    let [row, column, layer] = cuts(extents).map(|cut| cut.name);
    format!(
        "cuts through the middle of {rows} x {columns} x {layers} points: {row} (columns down, layers across), {column} (rows \
         down, layers across), {layer} (rows down, columns across)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cut_holds_the_points_of_its_middle_plane() {
        let [row, column, layer] = cuts([2, 3, 4]);
        assert_eq!((row.name.as_str(), row.plane, row.points), ("row 1", [3, 4], (12..24).collect()));
        assert_eq!((column.name.as_str(), column.plane), ("column 1", [2, 4]));
        assert_eq!(column.points, [4, 5, 6, 7, 16, 17, 18, 19]);
        assert_eq!((layer.name.as_str(), layer.plane), ("layer 2", [2, 3]));
        assert_eq!(layer.points, [2, 6, 10, 14, 18, 22]);
    }
}
