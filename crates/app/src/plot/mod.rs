//! Pictures: fields as heat maps or on their meshes, in sheets and figures, written as PNG.

mod canvas;
mod colour;
mod figure;
mod font;
mod map;
mod mesh;
mod number;
mod sheet;

pub(crate) use canvas::Canvas;
pub(crate) use colour::{FAINT, INK, PAPER, Rgb, Scale};
pub(crate) use figure::{Figure, share_colours};
pub(crate) use font::width as text_width;
pub(crate) use map::{Layout, Map, ends, strides, window};
pub(crate) use mesh::Window;
pub(crate) use number::number;
pub(crate) use sheet::{Column, Layouts, Sheet};
