//! The optimiser against PyTorch, moments and all; schedules past their end.

use crate::fixture::open;
use lamo::training::optimiser::{AdamW, GRADIENT_NORM, MEAN, SQUARE};
use lamo::training::schedule::{Pace, Schedule};
use lamo_tensor::{Graph, PARAMETERS, Program};

#[test]
fn past_its_end_a_schedule_keeps_its_last_pace() {
    let schedule = Schedule::OneCycle { peak: 1e-3, steps: 100 };
    assert_eq!(schedule.at(99), schedule.at(1000));
    assert!((schedule.at(99).rate / 4e-9 - 1.0).abs() < 1e-12);
    assert_eq!(Schedule::Cosine { peak: 1e-3, steps: 100 }.at(200).rate, 0.0);
}

#[test]
fn a_halved_rate_is_constant_between_two_halvings() {
    let schedule = Schedule::Halving { first: 8e-3, interval: 100 };
    let rates: Vec<f64> = [0, 99, 100, 199, 200, 499].map(|epoch| schedule.at(epoch).rate).to_vec();
    assert_eq!(rates, [8e-3, 8e-3, 4e-3, 4e-3, 2e-3, 5e-4]);
}

/// g ← g + λ θ before the moments, and θ only changes by the step (Kingma & Ba 2015 with L2, as `torch.optim.Adam`).
#[test]
fn a_coupled_decay_is_part_of_the_gradient() {
    let (rate, decay, [beta1, beta2]) = (1e-2, 0.3, [0.9_f64, 0.999_f64]);
    let adam = AdamW { weight_decay: decay, clip: None, coupled: true, ..AdamW::default() };
    let graph = Graph::new();
    let weight = graph.parameter("weight", [2]);
    adam.minimise(&graph, (weight * graph.input("gradient", [2])).sum_all());
    let mut program = Program::compile(&graph);
    let (mut theta, mut mean, mut square) = ([0.7_f64, -0.2], [0.0; 2], [0.0; 2]);
    program.write_parameter("weight", &theta.map(|value| value as f32));
    for step in 0..4_i32 {
        let gradient = [0.1 * f64::from(step) - 0.2, 0.3];
        program.write("gradient", &gradient.map(|value| value as f32));
        adam.pace(&mut program, step as usize, Pace { rate, beta1 }).unwrap();
        program.run();
        for i in 0..2 {
            let g = gradient[i] + decay * theta[i];
            mean[i] += (1.0 - beta1) * (g - mean[i]);
            square[i] = beta2 * square[i] + (1.0 - beta2) * g * g;
            let [m, v] = [mean[i] / (1.0 - beta1.powi(step + 1)), square[i] / (1.0 - beta2.powi(step + 1))];
            theta[i] -= rate * m / (v.sqrt() + 1e-8);
            let found = f64::from(program.read_parameter("weight")[i]);
            assert!((found - theta[i]).abs() < 1e-6, "step {step}: {found} and {}", theta[i]);
        }
    }
}

/// Five steps with the fixture's gradients: the loss ⟨θ, g⟩ has exactly these.
#[test]
fn adamw_equals_pytorch_with_and_without_clip_and_cycle_and_leaves_unused_parameters_unchanged() {
    for name in ["adamw_plain", "adamw_onecycle_clip", "adamw_ns_wd"] {
        let fixture = open(name);
        let setting = |key: &str| fixture.settings[key].as_f64();
        let adamw = AdamW {
            beta2: setting("beta2").unwrap(),
            epsilon: setting("eps").unwrap(),
            weight_decay: setting("wd").unwrap(),
            clip: setting("clip"),
            coupled: false,
        };
        let graph = Graph::new();
        let a = graph.parameter("a", fixture.dims("p0.a"));
        graph.parameter("never", fixture.dims("p0.never"));
        let b = graph.parameter("b", fixture.dims("p0.b"));
        let (ga, gb) = (graph.input("ga", fixture.dims("p0.a")), graph.input("gb", fixture.dims("p0.b")));
        adamw.minimise(&graph, (a * ga).sum_all() + (b * gb).sum_all());
        let mut program = Program::compile(&graph);
        for parameter in ["a", "never", "b"] {
            program.write_parameter(parameter, &fixture.floats(&format!("p0.{parameter}")));
        }
        for step in 0..5 {
            let pace = Pace { rate: fixture.values("lr")[step], beta1: fixture.values("beta1")[step] };
            adamw.pace(&mut program, step, pace).unwrap();
            program.write("ga", &fixture.floats(&format!("g{}.a", step + 1)));
            program.write("gb", &fixture.floats(&format!("g{}.b", step + 1)));
            program.run();
            for parameter in ["a", "never", "b"] {
                let key = format!("p{}.{parameter}", step + 1);
                fixture.check(&key, program.read_parameter(parameter), 2e-7, 0.0);
            }
            let norm = format!("total_norm{}", step + 1);
            if fixture.has(&norm) {
                fixture.check(&norm, program.read(GRADIENT_NORM), 1e-6, 0.0);
            }
        }
        for (state, prefix) in [(MEAN, "exp_avg"), (SQUARE, "exp_avg_sq")] {
            for section in program.sections().iter().filter(|section| section.name != "never") {
                let found = &program.read(state)[section.range()];
                fixture.check(&format!("{prefix}.{}", section.name), found, 1e-6, 0.0);
            }
        }
        assert_eq!(program.read(PARAMETERS).len(), 12 + 2 + 5);
    }
}
