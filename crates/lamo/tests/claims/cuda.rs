//! What can be known about CUDA without a GPU: every kernel of every experiment compiles.

use lamo::experiment::{EXPERIMENTS, Experiment};
use lamo::network::models;
use lamo::network::{Input, Mode, Parameters};
use lamo::training::loss::relative_l2_sum;
use lamo::training::optimiser::AdamW;
use lamo_tensor::{Graph, Precision, Program};

/// Runs where NVIDIA's compiler is found and `LAMO_TEST_KERNELS` asks for it: it takes minutes.
#[test]
fn every_kernel_of_every_experiment_compiles() {
    let Some(wanted) = std::env::var_os("LAMO_TEST_KERNELS") else { return };
    let wanted = wanted.to_string_lossy();
    let names = EXPERIMENTS.iter().map(|shipped| shipped.name.as_str());
    for name in names.filter(|name| wanted == "all" || name.starts_with(&*wanted)) {
        let experiment = Experiment::shipped(name).unwrap();
        let task = experiment.benchmark().unwrap().task();
        for precision in [Precision::F32, Precision::Tf32, Precision::Bf16] {
            let graph = Graph::new();
            let parameters = Parameters::new(&graph);
            let row = models::find(&experiment.model.name).unwrap();
            let model = row.build(&parameters, &task, &experiment.model.settings).unwrap();
            let out = model.forward(&Input::declare(&graph, &task, experiment.train.batch), Mode::Training);
            let loss = relative_l2_sum(out, graph.input("target", out.shape()));
            AdamW::default().minimise(&graph, loss);
            // A GPU of an office computer, and one of a data centre.
            for architecture in [86, 90] {
                let bytes = Program::compile_kernels(&graph, precision, architecture);
                assert!(bytes.unwrap_or_else(|error| panic!("{name}: {error}")) > 0);
            }
        }
    }
}
