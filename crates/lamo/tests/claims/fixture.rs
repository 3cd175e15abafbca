//! Fixtures: tensors computed by the authors' code and PyTorch, float32 unless their name ends in `_f64`.

use safetensors::{Dtype, SafeTensors};
use std::collections::HashMap;
use std::path::PathBuf;

pub(crate) struct Fixture {
    pub(crate) name: String,
    pub(crate) settings: serde_json::Value,
    tensors: HashMap<String, (Vec<usize>, Vec<f64>)>,
}

/// Opens `fixtures/ops/NAME`.
pub(crate) fn open(name: &str) -> Fixture {
    let folder = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../../fixtures/ops");
    let read = |ending: &str| {
        let path = folder.join(format!("{name}.{ending}"));
        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let bytes = read("safetensors");
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let tensors = file
        .iter()
        .map(|(key, view)| {
            let data = view.data();
            let values = match view.dtype() {
                Dtype::F32 => {
                    data.chunks_exact(4).map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap()))).collect()
                }
                Dtype::F64 => data.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect(),
                Dtype::I64 => data.chunks_exact(8).map(|b| i64::from_le_bytes(b.try_into().unwrap()) as f64).collect(),
                other => panic!("{name}: {key} has type {other:?}"),
            };
            (key.to_owned(), (view.shape().to_vec(), values))
        })
        .collect();
    Fixture { name: name.to_owned(), settings: serde_json::from_slice(&read("json")).unwrap(), tensors }
}

impl Fixture {
    pub(crate) fn has(&self, key: &str) -> bool {
        self.tensors.contains_key(key)
    }

    pub(crate) fn dims(&self, key: &str) -> &[usize] {
        &self.tensor(key).0
    }

    pub(crate) fn values(&self, key: &str) -> &[f64] {
        &self.tensor(key).1
    }

    pub(crate) fn floats(&self, key: &str) -> Vec<f32> {
        self.values(key).iter().map(|&value| value as f32).collect()
    }

    fn tensor(&self, key: &str) -> &(Vec<usize>, Vec<f64>) {
        self.tensors.get(key).unwrap_or_else(|| panic!("{}: no tensor {key}", self.name))
    }

    /// max|found − expected| ≤ relative · max|expected| + absolute, and everything finite.
    pub(crate) fn check(&self, key: &str, found: &[f32], relative: f64, absolute: f64) {
        let found: Vec<f64> = found.iter().map(|&value| f64::from(value)).collect();
        self.check_doubles(key, &found, relative, absolute);
    }

    pub(crate) fn check_doubles(&self, key: &str, found: &[f64], relative: f64, absolute: f64) {
        let expected = self.values(key);
        assert_eq!(found.len(), expected.len(), "{}: {key} has {} elements", self.name, expected.len());
        let largest = expected.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
        let tolerance = relative * largest + absolute;
        let error = found
            .iter()
            .zip(expected)
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, |worst: f64, e| if e.is_nan() { f64::NAN } else { worst.max(e) });
        assert!(error <= tolerance, "{}: {key} is off by {error:.2e}, allowed {tolerance:.2e}", self.name);
    }
}
