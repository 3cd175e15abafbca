//! Clients that people use: Triton's and KServe's for Python, where `LAMO_PYTHON` names a Python that has them.

use crate::support::{RUNS, command_line, npy, permeability, server};
use std::process::Command;

#[test]
fn the_clients_of_triton_and_kserve_get_the_bits_of_lamo_predict() {
    let Some(python) = std::env::var_os("LAMO_PYTHON") else {
        eprintln!("skipped: LAMO_PYTHON names no Python with tritonclient[http] or kserve");
        return;
    };
    let has = |module: &str| {
        Command::new(&python).args(["-c", &format!("import {module}")]).output().is_ok_and(|done| done.status.success())
    };
    let clients: Vec<&str> = ["tritonclient.http", "kserve"].into_iter().filter(|module| has(module)).collect();
    if clients.is_empty() {
        eprintln!("skipped: the Python of LAMO_PYTHON has neither tritonclient[http] nor kserve");
        return;
    }
    let (server, _) = server(|_| {});
    let folder = tempfile::tempdir().unwrap();
    let given = npy(&permeability(&[3, 12, 12], 7));
    let [input, expected] = ["input.npy", "expected.npy"].map(|name| folder.path().join(name));
    std::fs::write(&expected, command_line(&RUNS.darcy, &given, "npy", None)).unwrap();
    std::fs::write(&input, given).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients.py");
    for client in clients {
        let mut command = Command::new(&python);
        command.arg(script).arg(client).arg(server.address().to_string()).args([&input, &expected]);
        let done = command.output().unwrap();
        let told = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{client}: {told}");
        eprintln!("{client}: {told}");
    }
}
