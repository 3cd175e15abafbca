//! Serves trained models over HTTP: the Open Inference Protocol, files of arrays and meshes, and a page.
//!
//! ```no_run
//! use lamo_serve::{Server, Settings, Source};
//!
//! let server = Server::start(&[Source::parse("darcy")?], Settings::local())?;
//! println!("http://{}", server.address());
//! server.stop(); // finishes what runs
//! # Ok::<(), lamo::Error>(())
//! ```
//!
//! Requests become samples as `lamo predict` reads them (`own`, `open_inference`), wait in the queue of their model
//! (`engine`), are computed together with others, and answered. `router` has what surrounds every request, `server` the
//! connections, `docs/serve.md` the routes and limits.

mod body;
mod card;
mod catalogue;
mod engine;
mod failure;
mod log;
mod metrics;
mod open_inference;
mod own;
mod page;
mod router;
mod server;
mod settings;

pub use catalogue::Source;
pub use log::{Record, Sink};
pub use metrics::resident_memory;
pub use server::Server;
pub use settings::{Limits, Settings};
