//! Pictures: fields as heat maps or on their meshes, on one sheet, written as PNG without any drawing library.

mod canvas;
mod colour;
mod font;
mod mesh;
mod sheet;

pub(crate) use canvas::Canvas;
pub(crate) use sheet::{Column, Sheet};
