//! Pictures: fields as heat maps on one sheet, written as PNG without any drawing library.

mod canvas;
mod colour;
mod font;
mod sheet;

pub(crate) use canvas::Canvas;
pub(crate) use sheet::{Column, Sheet};
