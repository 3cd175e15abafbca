//! What can be known about CUDA without a card: every kernel of every experiment compiles.

use lamo::experiment::{EXPERIMENTS, Experiment};
use lamo::network::layers::Parameters;
use lamo::network::models::{self, Input};
use lamo::training::loss::relative_l2_sum;
use lamo::training::optimiser::AdamW;
use lamo_tensor::{Graph, Precision, Program};

/// Runs where NVIDIA's compiler is found and `LAMO_TEST_KERNELS` asks for it: it takes minutes.
#[test]
fn every_kernel_of_every_experiment_compiles() {
    let Some(wanted) = std::env::var_os("LAMO_TEST_KERNELS") else { return };
    let wanted = wanted.to_string_lossy();
    for (name, _) in EXPERIMENTS.iter().filter(|(name, _)| wanted == "all" || name.starts_with(&*wanted)) {
        let experiment = Experiment::shipped(name).unwrap();
        let task = experiment.benchmark().unwrap().task(experiment.train.batch);
        for precision in [Precision::F32, Precision::Tf32, Precision::Bf16] {
            let graph = Graph::new();
            let parameters = Parameters::new(&graph);
            let row = models::find(&experiment.model.name).unwrap();
            let model = row.build(&parameters, &task, &experiment.model.settings).unwrap();
            let out = model.forward(&Input::declare(&graph, &task));
            let loss = relative_l2_sum(out, graph.input("target", out.shape()));
            AdamW::default().minimise(&graph, loss);
            // A card of the office, and one of the data centre.
            for architecture in [86, 90] {
                let bytes = Program::compile_kernels(&graph, precision, architecture);
                assert!(bytes.unwrap_or_else(|error| panic!("{name}: {error}")) > 0);
            }
        }
    }
}
