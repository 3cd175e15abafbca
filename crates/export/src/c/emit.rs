//! The loops of a C program as C99. Loops that differ in their arrays alone are one function.

use super::kernel::{Expression, Kernel};
use super::special;
use super::view::{View, merged};
use lamo::tensor::Map;
use std::collections::BTreeSet;
use std::fmt::Write;

/// A function: its parameters, its body, and the arrays of one call.
pub(crate) struct Function {
    /// What it does, in a word that starts its name.
    pub(crate) word: &'static str,
    /// Names of the arrays that it reads.
    pub(crate) reads: Vec<String>,
    /// Names of the arrays that it writes.
    pub(crate) writes: Vec<String>,
    pub(crate) body: String,
    /// The arrays of the call, reads first.
    pub(crate) arguments: Vec<View>,
    /// Helpers that the body calls.
    pub(crate) helpers: BTreeSet<&'static str>,
}

/// Names of the counters of nested loops.
pub(super) const COUNTERS: [&str; 10] = ["i", "j", "k", "l", "m", "n", "o", "p", "q", "r"];

/// How C writes a map, with `$` for each operand in turn; `None` where it has no exact form. A word in capitals is a helper.
pub(crate) fn function(map: Map) -> Option<&'static str> {
    Some(match map {
        Map::Copy => "$",
        Map::Negate => "(-$)",
        Map::Absolute => "fabsf($)",
        Map::Sign => "lamo_sign($)",
        Map::Exp => "expf($)",
        Map::Log => "logf($)",
        Map::Sqrt => "sqrtf($)",
        Map::Reciprocal => "(1.0f / $)",
        Map::Tanh => "tanhf($)",
        Map::Erf => "erff($)",
        Map::Sin => "sinf($)",
        Map::Cos => "cosf($)",
        Map::Sigmoid => "lamo_sigmoid($)",
        Map::Softplus => "lamo_softplus($)",
        Map::Gelu => "lamo_gelu($)",
        Map::Silu => "lamo_silu($)",
        Map::Add => "($ + $)",
        Map::Subtract => "($ - $)",
        Map::Multiply => "($ * $)",
        Map::Divide => "($ / $)",
        Map::Maximum => "lamo_larger($, $)",
        Map::Minimum => "lamo_smaller($, $)",
        Map::Arctangent => "atan2f($, $)",
        Map::Less => "(float)($ < $)",
        Map::Equal => "(float)($ == $)",
        Map::Select => "($ != 0.0f ? $ : $)",
        Map::SoftplusDerivative | Map::GeluDerivative | Map::SiluDerivative | Map::Philox => return None,
    })
}

/// Functions that expressions call.
pub(crate) const HELPERS: &[(&str, &str)] = &[
    ("lamo_sign", "static float lamo_sign(float x) { return (float)((x > 0.0f) - (x < 0.0f)); }"),
    ("lamo_sigmoid", "static float lamo_sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }"),
    ("lamo_softplus", "static float lamo_softplus(float x) { return x > 20.0f ? x : log1pf(expf(x)); }"),
    ("lamo_gelu", "static float lamo_gelu(float x) { return 0.5f * x * erfcf(-0.70710678f * x); }"),
    ("lamo_silu", "static float lamo_silu(float x) { return x / (1.0f + expf(-x)); }"),
    ("lamo_larger", "static float lamo_larger(float x, float y) { return x > y || x != x ? x : y; }"),
    ("lamo_smaller", "static float lamo_smaller(float x, float y) { return x < y || x != x ? x : y; }"),
];

/// A number as C reads it, with the same bits.
pub(crate) fn literal(number: f32) -> String {
    match number {
        _ if number.is_nan() => "NAN".to_owned(),
        _ if number.is_infinite() => if number > 0.0 { "INFINITY" } else { "-INFINITY" }.to_owned(),
        _ => format!("{number:?}f"),
    }
}

/// `12 * i + j`, from counters and strides.
fn place(counters: &[&str], strides: &[isize]) -> String {
    let term = |(counter, stride): (&&str, &isize)| match stride {
        0 => None,
        1 => Some((*counter).to_owned()),
        stride => Some(format!("{stride} * {counter}")),
    };
    let terms: Vec<String> = counters.iter().zip(strides).filter_map(term).collect();
    if terms.is_empty() { "0".to_owned() } else { terms.join(" + ") }
}

/// Opens nested loops over extents; the counters start at `from` in the list of names.
pub(crate) fn open(body: &mut String, dims: &[usize], from: usize, depth: &mut usize) {
    for (axis, extent) in dims.iter().enumerate() {
        let counter = COUNTERS[from + axis];
        line(body, *depth, &format!("for (ptrdiff_t {counter} = 0; {counter} < {extent}; {counter}++)"));
        *depth += 1;
    }
}

pub(crate) fn line(body: &mut String, depth: usize, text: &str) {
    let _ = writeln!(body, "{}{text}", "    ".repeat(depth)); // writing to a string does not fail
}

/// An expression with the text of each operand's element.
fn written(expression: &Expression, loads: &[String], helpers: &mut BTreeSet<&'static str>) -> String {
    match expression {
        Expression::Load(operand) => loads[*operand].clone(),
        Expression::Number(number) if *number < 0.0 => format!("({})", literal(*number)),
        Expression::Number(number) => literal(*number),
        Expression::Map(map, operands) => {
            let form = function(*map).unwrap_or("$");
            helpers.extend(HELPERS.iter().map(|(name, _)| *name).filter(|name| form.starts_with(name)));
            let mut parts = operands.iter();
            let mut text = String::new();
            for letter in form.chars() {
                match (letter, letter == '$') {
                    (_, true) => {
                        text.push_str(&parts.next().map(|part| written(part, loads, helpers)).unwrap_or_default());
                    }
                    (letter, _) => text.push(letter),
                }
            }
            text
        }
    }
}

/// The operands that an expression reads, and the expression with their new numbers.
fn used(expression: &Expression, operands: &[View]) -> (Expression, Vec<View>) {
    fn visit(expression: &Expression, found: &mut BTreeSet<usize>) {
        match expression {
            Expression::Load(operand) => {
                found.insert(*operand);
            }
            Expression::Number(_) => {}
            Expression::Map(_, operands) => operands.iter().for_each(|operand| visit(operand, found)),
        }
    }
    let mut found = BTreeSet::new();
    visit(expression, &mut found);
    let numbers: Vec<usize> = (0..operands.len()).map(|operand| found.range(..operand).count()).collect();
    (expression.renumbered(&numbers), found.iter().map(|&operand| operands[operand].clone()).collect())
}

impl Function {
    /// The function of a loop.
    pub(crate) fn of(kernel: &Kernel) -> Function {
        match kernel {
            Kernel::Loop { out, expression, operands } => each(out, expression, operands),
            Kernel::Reduce { out, expression, operands, first, end, sum } => {
                reduce(out, expression, operands, ([*first, *end], *sum))
            }
            _ => special::function(kernel),
        }
    }

    pub(super) fn plain(
        word: &'static str,
        reads: &[(&str, &View)],
        writes: &[(&str, &View)],
        body: String,
    ) -> Function {
        let names = |list: &[(&str, &View)]| list.iter().map(|(name, _)| (*name).to_owned()).collect();
        let arguments = reads.iter().chain(writes).map(|(_, view)| (*view).clone()).collect();
        Function { word, reads: names(reads), writes: names(writes), body, arguments, helpers: BTreeSet::new() }
    }
}

fn with_operands(
    word: &'static str,
    operands: &[View],
    out: &View,
    body: String,
    helpers: BTreeSet<&'static str>,
) -> Function {
    Function {
        word,
        reads: (0..operands.len()).map(|operand| format!("a{operand}")).collect(),
        writes: vec!["out".into()],
        body,
        arguments: operands.iter().chain([out]).cloned().collect(),
        helpers,
    }
}

fn each(out: &View, expression: &Expression, operands: &[View]) -> Function {
    let (expression, operands) = used(expression, operands);
    let views = merged(&std::iter::once(out.clone()).chain(operands.iter().cloned()).collect::<Vec<_>>());
    let dims = &views[0].dims;
    let counters = &COUNTERS[..dims.len()];
    let loads: Vec<String> =
        (1..views.len()).map(|k| format!("a{}[{}]", k - 1, place(counters, &views[k].strides))).collect();
    let (mut body, mut depth, mut helpers) = (String::new(), 1, BTreeSet::new());
    open(&mut body, dims, 0, &mut depth);
    let value = written(&expression, &loads, &mut helpers);
    line(&mut body, depth, &format!("out[{}] = {value};", place(counters, &views[0].strides)));
    with_operands("loop", &operands, out, body, helpers)
}

/// Lanes of a sum over neighbouring elements: they are added side by side.
const LANES: usize = 8;

fn reduce(out: &View, expression: &Expression, operands: &[View], ([first, end], sum): ([usize; 2], bool)) -> Function {
    let (expression, operands) = used(expression, operands);
    let all: Vec<View> = std::iter::once(out.clone()).chain(operands.iter().cloned()).collect();
    // Axes before, among and behind the reduced ones; the result has extent 1 along the latter.
    let part = |from: usize, to: usize, reduced: bool| -> Vec<View> {
        let cut = |view: &View| view.axes(view.dims[from..to].to_vec(), view.strides[from..to].to_vec());
        let mut views: Vec<View> = all.iter().map(cut).collect();
        if reduced {
            let dims = if operands.is_empty() { views[0].dims.clone() } else { views[1].dims.clone() };
            views[0] = views[0].axes(dims.clone(), vec![0; dims.len()]);
        }
        if views[0].dims.is_empty() {
            views.iter().map(|view| view.axes(vec![1], vec![0])).collect()
        } else {
            merged(&views)
        }
    };
    let parts = [part(0, first, false), part(first, end, true), part(end, out.dims.len(), false)];
    let ranks = parts.each_ref().map(|part| part[0].dims.len());
    let counters = &COUNTERS[..ranks.iter().sum()];
    let strides = |view: usize| parts.iter().flat_map(|part| part[view].strides.clone()).collect::<Vec<isize>>();
    let loads: Vec<String> =
        (1..all.len()).map(|view| format!("a{}[{}]", view - 1, place(counters, &strides(view)))).collect();
    let mut helpers = BTreeSet::new();
    let value = written(&expression, &loads, &mut helpers);
    let target = format!("out[{}]", place(counters, &strides(0)));
    let inner: usize = parts[2][0].dims.iter().product();
    let run = &parts[1][0].dims;
    let (mut body, mut depth) = (String::new(), 1);
    open(&mut body, &parts[0][0].dims, 0, &mut depth);
    line(&mut body, depth, "{");
    let inside = depth + 1;
    let mut deep = inside;
    let (kind, start) = if sum { ("double", "0.0") } else { ("float", "-INFINITY") };
    let update = |target: &str| match sum {
        true => format!("{target} += {value};"),
        false => format!("if ({value} > {target}) {target} = {value};"),
    };
    let walks = (1..all.len()).any(|view| parts[1][view].strides.iter().any(|&stride| stride != 0));
    if inner == 1 && sum && walks && run.len() == 1 && run[0] >= 2 * LANES {
        let counter = counters[ranks[0]];
        line(&mut body, inside, &format!("float lane[{LANES}] = {{0.0f}}, total = 0.0f;"));
        line(&mut body, inside, &format!("ptrdiff_t {counter} = 0, last = 0;"));
        line(&mut body, inside, &format!("for (; last + {LANES} <= {}; last += {LANES})", run[0]));
        line(&mut body, inside + 1, &format!("for (ptrdiff_t u = 0; u < {LANES}; u++) {{"));
        line(&mut body, inside + 2, &format!("{counter} = last + u;"));
        line(&mut body, inside + 2, &format!("lane[u] += {value};"));
        line(&mut body, inside + 1, "}");
        line(&mut body, inside, &format!("for ({counter} = last; {counter} < {}; {counter}++)", run[0]));
        line(&mut body, inside + 1, &format!("total += {value};"));
        line(&mut body, inside, &format!("for (ptrdiff_t u = 0; u < {LANES}; u++)"));
        line(&mut body, inside + 1, "total += lane[u];");
        let place = place(&counters[..ranks[0]], &parts[0][0].strides);
        line(&mut body, inside, &format!("out[{place}] = total;"));
    } else if inner == 1 {
        line(&mut body, inside, &format!("{kind} total = {start};"));
        open(&mut body, run, ranks[0], &mut deep);
        line(&mut body, deep, &update("total"));
        let place = place(&counters[..ranks[0]], &parts[0][0].strides);
        line(&mut body, inside, &format!("out[{place}] = (float)total;"));
    } else {
        // Sums of columns: rows are added one after the other.
        let columns = View::whole(0, &parts[2][0].dims);
        let own = place(&counters[ranks[0] + ranks[1]..], &columns.strides);
        line(&mut body, inside, &format!("{kind} total[{inner}];"));
        line(&mut body, inside, &format!("for (ptrdiff_t u = 0; u < {inner}; u++)"));
        line(&mut body, inside + 1, &format!("total[u] = {start};"));
        open(&mut body, run, ranks[0], &mut deep);
        open(&mut body, &parts[2][0].dims, ranks[0] + ranks[1], &mut deep);
        line(&mut body, deep, &update(&format!("total[{own}]")));
        let mut deep = inside;
        open(&mut body, &parts[2][0].dims, ranks[0] + ranks[1], &mut deep);
        line(&mut body, deep, &format!("{target} = (float)total[{own}];"));
    }
    line(&mut body, depth, "}");
    with_operands("reduce", &operands, out, body, helpers)
}
