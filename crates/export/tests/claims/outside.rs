//! Judges from outside: onnxruntime and the checker of onnx (PyPI), and a C compiler.

use crate::support::{Case, Folder, operator, row, surroundings, tasks};
use lamo::data::formats::{self, Named};
use lamo::inference::Port;
use lamo::network::models::{MODELS, Settings};
use lamo::task::Task;
use lamo::{Grid, Operator};
use lamo_export::{ExportRequest, ExportedFile, export_operator};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Tasks between two that are compared.
const EVERY: usize = 3;
/// What a prediction in f32 may differ by from another.
const TOLERANCE: f64 = 1e-5;

/// Python with onnxruntime, onnx and numpy: `LAMO_PYTHON`, or the first python3.
fn python() -> Option<String> {
    let python = std::env::var("LAMO_PYTHON").unwrap_or_else(|_| "python3".into());
    let found = Command::new(&python).args(["-c", "import onnxruntime, onnx, numpy"]).output();
    found.is_ok_and(|output| output.status.success()).then_some(python)
}

fn compiler() -> Option<String> {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    Command::new(&compiler).arg("--version").output().is_ok_and(|output| output.status.success()).then_some(compiler)
}

/// Every model on each `every`-th of its tasks, LaMO, Transolver and FNO with what surrounds a model, and LaMO in more forms.
fn cases(every: usize) -> Vec<(String, Operator)> {
    let mut cases: Vec<(String, Operator)> = Vec::new();
    for row in MODELS {
        for task in
            tasks().into_iter().filter(|task| row.supports.allows(task) && task.input_channels() > 0).step_by(every)
        {
            cases.push((format!("{}-{}", row.name, cases.len()), operator(row, &task, (row.tiny)(&task))));
        }
    }
    for name in ["lamo", "transolver", "fno"] {
        for task in surroundings() {
            cases.push((format!("{name}-{}", cases.len()), operator(row(name), &task, (row(name).tiny)(&task))));
        }
    }
    // LaMO on patches with several chunks of tokens, and on slices.
    for (grid, settings) in [
        (Grid::Plane { rows: 13, columns: 11 }, "patch = 1\nwidth = 16"),
        (Grid::Cloud { points: 90 }, "tokens = 70\nwidth = 16"),
    ] {
        let task = Task::plain(grid, 2, 1, 1);
        let mut all = (row("lamo").tiny)(&task);
        all.extend(settings.parse::<Settings>().unwrap());
        cases.push((format!("lamo-{}", cases.len()), operator(row("lamo"), &task, all)));
    }
    cases
}

fn export(operator: &Operator, onnx: Option<PathBuf>, c: Option<PathBuf>) -> ExportedFile {
    let request = ExportRequest { model: PathBuf::new(), onnx, c, grid: None, samples: 1 };
    let exported = export_operator(operator, &request, None, None);
    exported.unwrap_or_else(|error| panic!("{}: {error}", operator.model.name)).written.remove(0)
}

/// `[samples, ...shape]` arrays of all samples by name.
fn arrays(ports: &[Port], values: &[Vec<Vec<f32>>]) -> Vec<Named> {
    let array = |(place, port): (usize, &Port)| Named {
        name: port.name.clone(),
        shape: std::iter::once(values.len()).chain(port.shape.iter().copied()).collect(),
        values: values.iter().flat_map(|arrays| arrays[place].iter().copied()).collect(),
    };
    ports.iter().enumerate().map(array).collect()
}

#[test]
#[allow(clippy::print_stdout)] // it says why it did not run, and how much it compared
fn onnxruntime_predicts_what_lamo_predicts_and_the_checker_of_onnx_accepts_every_file() {
    let Some(python) = python() else {
        return println!("skipped: set LAMO_PYTHON to a Python that has onnxruntime, onnx and numpy");
    };
    let folder = Folder::new("onnx");
    for (name, operator) in cases(EVERY) {
        let file = export(&operator, Some(folder.at(&format!("{name}.onnx"))), None);
        let mut cases = vec![(name.clone(), Case::of(&operator, 5))];
        // One with more points, and one with fewer, where a file takes any number.
        for points in file.verified.points.map(|[_, most]| [2 * most + 1, 3]).into_iter().flatten() {
            cases.push((format!("{name}.{points}"), Case::on(&operator, Grid::Cloud { points }, 5)));
        }
        for (name, case) in cases {
            let write =
                |kind: &str, arrays: Vec<Named>| formats::write(&folder.at(&format!("{name}.{kind}.npz")), &arrays);
            write("given", arrays(&case.physical.inputs, &case.given)).unwrap();
            write("made", arrays(&case.physical.outputs, &case.expected)).unwrap();
        }
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/outside.py");
    let output = Command::new(python).arg(script).arg(folder.path()).arg(TOLERANCE.to_string()).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    println!("{told}");
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
}

/// A program that reads the arrays of samples from files and writes the predictions.
fn program(ports: [&[Port]; 2], header: &str, samples: usize) -> String {
    let [given, made] = ports;
    let length = |port: &Port| samples * port.shape.iter().product::<usize>();
    let declare =
        |port: &Port, prefix: &str, place: usize| format!("static float {prefix}{place}[{}];\n", length(port));
    let mut text = format!("#include \"{header}\"\n#include <stdio.h>\nstatic float workspace[LAMO_WORKSPACE];\n");
    given.iter().enumerate().for_each(|(place, port)| text += &declare(port, "given", place));
    made.iter().enumerate().for_each(|(place, port)| text += &declare(port, "made", place));
    text += "int main(void)\n{\n    FILE *file = fopen(\"given.bin\", \"rb\");\n    size_t count = 0;\n    if (!file) return 2;\n";
    for (place, port) in given.iter().enumerate() {
        text += &format!("    count += fread(given{place}, sizeof(float), {}, file);\n", length(port));
    }
    let total: usize = given.iter().map(length).sum();
    let names = (0..given.len())
        .map(|place| format!("given{place}"))
        .chain((0..made.len()).map(|place| format!("made{place}")));
    let names: Vec<String> = names.collect();
    text += &format!("    fclose(file);\n    if (count != {total}) return 3;\n");
    text += &format!("    if (lamo_predict({samples}, {}, workspace)) return 4;\n", names.join(", "));
    text += "    file = fopen(\"made.bin\", \"wb\");\n    if (!file) return 5;\n";
    for (place, port) in made.iter().enumerate() {
        text += &format!("    fwrite(made{place}, sizeof(float), {}, file);\n", length(port));
    }
    text + "    return fclose(file);\n}\n"
}

#[test]
#[allow(clippy::print_stdout)]
fn a_c_program_compiled_without_a_warning_predicts_what_lamo_predicts() {
    let Some(compiler) = compiler() else { return println!("skipped: there is no C compiler; set CC to one") };
    let (mut worst, all) = (0.0_f64, cases(4 * EVERY)); // compiling takes longer than running
    for (name, operator) in &all {
        let folder = Folder::in_memory("c");
        let (case, samples) = (Case::of(operator, 3), 3);
        export(operator, None, Some(folder.at("model.c")));
        let bytes = |values: &[Vec<Vec<f32>>], ports: usize| -> Vec<u8> {
            let port = |place: usize| {
                values.iter().flat_map(move |arrays| arrays[place].iter().flat_map(|value| value.to_le_bytes()))
            };
            (0..ports).flat_map(port).collect()
        };
        let (inputs, outputs) = (&case.physical.inputs, &case.physical.outputs);
        std::fs::write(folder.at("given.bin"), bytes(&case.given, inputs.len())).unwrap();
        std::fs::write(folder.at("main.c"), program([inputs, outputs], "model.h", samples)).unwrap();
        let flags = ["-O2", "-std=c99", "-Wall", "-Wextra", "-Werror", "-o", "model", "main.c", "model.c", "-lm"];
        let compiled = Command::new(&compiler).args(flags).current_dir(folder.path()).output().unwrap();
        assert!(compiled.status.success(), "{name}: {}", String::from_utf8_lossy(&compiled.stderr));
        let done = Command::new(folder.at("model")).current_dir(folder.path()).status().unwrap();
        assert!(done.success(), "{name}: {done}");
        let found = std::fs::read(folder.at("made.bin")).unwrap();
        let found: Vec<f32> = found.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
        let expected: Vec<f32> = bytes(&case.expected, outputs.len())
            .as_chunks::<4>()
            .0
            .iter()
            .map(|&bytes| f32::from_le_bytes(bytes))
            .collect();
        let square = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>().sqrt();
        let difference = square(&mut found.iter().zip(&expected).map(|(one, two)| f64::from(one - two)));
        let error = difference / square(&mut expected.iter().map(|&value| f64::from(value)));
        assert!(found.len() == expected.len() && error < TOLERANCE, "{name}: {error:.1e}");
        worst = worst.max(error);
        let _ = &case.samples;
    }
    println!("{} programs, largest relative error {worst:.1e}", all.len());
}
