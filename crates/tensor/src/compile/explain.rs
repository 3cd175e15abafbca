//! Explain: a plan in words, one line per kernel.

use super::blocks::Blocks;
use super::plan::{Instruction, Operand, Place, Plan, Role, Step};
use std::fmt::Write;

/// One line per kernel, then the memory of all.
pub(crate) fn explain(plan: &Plan) -> String {
    let mut text = String::new();
    for (position, step) in plan.steps.iter().enumerate() {
        let _ = writeln!(text, "{position:4}  {}", describe(step));
    }
    let persistent: usize =
        plan.buffers.iter().filter(|buffer| buffer.role != Role::Temporary).map(|buffer| buffer.length).sum();
    let megabytes = |elements: usize| elements as f64 * 4e-6;
    let _ = writeln!(
        text,
        "{} kernels; {:.1} MB kept between runs, {:.1} MB of working memory",
        plan.steps.len(),
        megabytes(persistent),
        megabytes(plan.arena - persistent.min(plan.arena)),
    );
    text
}

fn dims(place: &Place) -> String {
    format!("{:?}", place.layout.dims)
}

/// One kernel in words, with the instructions of a loop.
pub(crate) fn describe(step: &Step) -> String {
    match step {
        Step::Loop(_) => format!("{}:{}", summary(step), arithmetic(step)),
        _ => summary(step),
    }
}

/// One kernel in a few words.
pub(crate) fn summary(step: &Step) -> String {
    match step {
        Step::Loop(body) => format!("loop {:?}", body.dims),
        Step::Clear { buffer } => format!("clear #{buffer}"),
        Step::MatMul { exact, left, right, .. } => {
            format!("matmul {} × {}{}", dims(left), dims(right), if *exact { " in f32" } else { "" })
        }
        Step::InverseCholesky { from, .. } => format!("inverse Cholesky factor {}", dims(from)),
        Step::Convolution { input, weight, .. } => format!("convolution {} * {}", dims(input), dims(weight)),
        Step::ConvolutionInputGradient { cotangent, weight, .. } => {
            format!("convolution input gradient {} * {}", dims(cotangent), dims(weight))
        }
        Step::ConvolutionWeightGradient { input, cotangent, .. } => {
            format!("convolution weight gradient {} * {}", dims(input), dims(cotangent))
        }
        Step::Collect { shape, .. } => format!("collect {shape:?}"),
        Step::Spread { shape, .. } => format!("spread {shape:?}"),
        Step::MembershipGradient(step) => format!("membership gradient {:?}", step.shape),
        Step::Scan { shape, .. } => format!("scan {shape:?}"),
        Step::ScanGradient { shape, .. } => format!("scan gradient {shape:?}"),
        Step::Gather { from, to, .. } => format!("gather {} → {}", dims(from), dims(to)),
        Step::ScatterAdd { from, to, .. } => format!("scatter-add {} → {}", dims(from), dims(to)),
        Step::Blocks(blocks) => {
            let all: Vec<String> = blocks.members.iter().map(summary).collect();
            let Blocks { rows, batch, points, .. } = &**blocks;
            format!("{} kernels by blocks of {rows} of {batch} x {points} points: {}", all.len(), all.join("; "))
        }
    }
}

/// The instructions of a loop; empty for other kernels.
pub(crate) fn arithmetic(step: &Step) -> String {
    let Step::Loop(body) = step else { return String::new() };
    let operand = |operand: &Operand| match operand {
        Operand::Register(register) => format!("r{register}"),
        Operand::Number(number) => format!("{number}"),
    };
    let mut text = String::new();
    for instruction in &body.instructions {
        let _ = match instruction {
            Instruction::Load { from, to } => write!(text, " r{to}=#{}", from.buffer),
            Instruction::Map { map, operands, to } => {
                let list: Vec<_> = operands[..map.arity()].iter().map(operand).collect();
                write!(text, " r{to}={map:?}({})", list.join(","))
            }
            Instruction::ReduceRow { kind, operand: from, to } => write!(text, " r{to}=Row{kind:?}({})", operand(from)),
            Instruction::Store { operand: from, to } => write!(text, " #{}={}", to.buffer, operand(from)),
            Instruction::Accumulate { operand: from, across } => {
                let across = &body.across[*across];
                write!(text, " #{}{:?}={}", across.to.buffer, across.kind, operand(from))
            }
        };
    }
    text
}
