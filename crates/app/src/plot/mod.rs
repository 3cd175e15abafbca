//! Pictures: fields as heat maps or on their meshes, in sheets and figures, written as PNG; charts of a paper as SVG and PNG.

mod axis;
mod bars;
mod bubbles;
mod canvas;
mod colour;
mod curves;
mod drawing;
mod fields;
mod figure;
mod font;
mod map;
mod matrices;
mod mesh;
mod number;
mod orders;
mod raster;
mod sheet;
mod table;

pub(crate) use axis::{Axis, Scaling};
pub(crate) use bars::{BarGroup, BarPanel, bar_panels};
pub(crate) use bubbles::{Bubble, BubblePanel, bubble_panels};
pub(crate) use canvas::Canvas;
pub(crate) use colour::{FAINT, INK, PAPER, Rgb, Scale};
pub(crate) use curves::{Curve, CurvePanel, Marker, curve_panels};
pub(crate) use drawing::{Drawing, Ink};
pub(crate) use fields::{FieldColumn, FieldPicture, field_sheet};
pub(crate) use figure::{Figure, share_colours};
pub(crate) use font::width as text_width;
pub(crate) use map::{Layout, Map, ends, strides, window};
pub(crate) use matrices::{MatrixPicture, MatrixRow, matrix_sheet};
pub(crate) use mesh::Window;
pub(crate) use number::number;
pub(crate) use orders::scan_orders;
pub(crate) use sheet::{Column, Layouts, Sheet};
pub(crate) use table::{TableCell, TableRow, table};
