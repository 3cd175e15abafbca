//! Exports a model to `model.onnx` and `model.c`: `cargo run --release -p lamo-export --example export -- runs/darcy-lamo-1`.

use lamo_export::{ExportRequest, export};

#[allow(clippy::print_stdout)] // an example
fn main() -> Result<(), lamo::Error> {
    let model = std::env::args().nth(1).unwrap_or_else(|| "darcy".to_owned()).into();
    let request =
        ExportRequest { model, onnx: Some("model.onnx".into()), c: Some("model.c".into()), grid: None, samples: 2 };
    for written in export(&request)?.written {
        println!(
            "{}: {} bytes, differs from lamo by {:.1e}",
            written.form, written.bytes, written.verified.relative_l2
        );
    }
    Ok(())
}
