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
