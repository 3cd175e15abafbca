//! Claims about what is exported.

mod files;
mod outside;
mod registry;
mod support;
