//! The text of the source and of the header.

use super::CModel;
use super::emit::{Function, HELPERS, literal};
use super::memory::Place;
use super::view::View;
use crate::metadata::Metadata;
use lamo::inference::Port;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;

/// Words that no argument can be called.
const TAKEN: &[&str] = &[
    "auto",
    "break",
    "case",
    "char",
    "const",
    "continue",
    "default",
    "do",
    "double",
    "else",
    "enum",
    "extern",
    "float",
    "for",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "register",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "typedef",
    "union",
    "unsigned",
    "void",
    "volatile",
    "while",
    "samples",
    "workspace",
    "weights",
    "sample",
];

/// A name of a field as a name of an argument.
fn argument(name: &str, taken: &mut Vec<String>) -> String {
    let letters = name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' });
    let mut word: String = letters.collect();
    if word.is_empty() || word.starts_with(|letter: char| letter.is_ascii_digit()) {
        word.insert(0, '_');
    }
    while TAKEN.contains(&word.as_str()) || taken.contains(&word) {
        word.push('_');
    }
    taken.push(word.clone());
    word
}

impl CModel {
    /// The texts of the source and of the header, whose name is given.
    pub(crate) fn text(&self, header: &str, about: &Metadata) -> [String; 2] {
        let mut taken = Vec::new();
        let inputs: Vec<String> = self.inputs.iter().map(|port| argument(&port.name, &mut taken)).collect();
        let outputs: Vec<String> = self.outputs.iter().map(|port| argument(&port.name, &mut taken)).collect();
        [self.source(header, about, (&inputs, &outputs)), self.header(header, about, (&inputs, &outputs))]
    }

    fn prototype((inputs, outputs): (&[String], &[String])) -> String {
        let reads = inputs.iter().map(|name| format!("const float *{name}"));
        let writes = outputs.iter().map(|name| format!("float *{name}"));
        let arguments: Vec<String> = reads.chain(writes).collect();
        format!("int LAMO_PREDICT(size_t samples, {}, float *workspace)", arguments.join(", "))
    }

    fn header(&self, name: &str, about: &Metadata, (inputs, outputs): (&[String], &[String])) -> String {
        let guard: String = name
            .chars()
            .map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' })
            .collect();
        let mut text = comment(about);
        let describe = |port: &Port, name: &String| {
            let shape: Vec<String> = port.shape.iter().map(ToString::to_string).collect();
            let shape = std::iter::once("samples".to_owned()).chain(shape).collect::<Vec<_>>().join(", ");
            format!(" *   {name}: [{shape}], unit {}\n", one_line(&port.unit))
        };
        let given: String = self.inputs.iter().zip(inputs).map(|(port, name)| describe(port, name)).collect();
        let made: String = self.outputs.iter().zip(outputs).map(|(port, name)| describe(port, name)).collect();
        let _ = write!(
            text,
            "#ifndef LAMO_{guard}
#define LAMO_{guard}

#include <stddef.h>

#ifdef __cplusplus
extern \"C\" {{
#endif

/* Another name of the function, for programs with several models: -DLAMO_PREDICT=my_predict for this source and its users. */
#ifndef LAMO_PREDICT
#define LAMO_PREDICT lamo_predict
#endif

/* Floats of the workspace. Each thread needs a workspace of its own; it need not be cleared. */
#define LAMO_WORKSPACE {work}

/* Predicts samples one after another. Arrays are in row-major order; values are in the units of the data.
 * given:
{given} * made:
{made} * Returns 0, or 1 where a pointer is null.
 */
{prototype};

#ifdef __cplusplus
}}
#endif

#endif
",
            work = self.work.max(1),
            prototype = CModel::prototype((inputs, outputs)),
        );
        text
    }

    fn source(&self, header: &str, about: &Metadata, (inputs, outputs): (&[String], &[String])) -> String {
        let mut text = comment(about);
        let _ = write!(text, "#include \"{header}\"\n\n#include <math.h>\n\n");
        self.write_weights(&mut text);
        let mut known: HashMap<(String, Vec<String>), String> = HashMap::new();
        let (mut functions, mut calls, mut helpers) = (String::new(), String::new(), BTreeSet::<&str>::new());
        for kernel in &self.kernels {
            let function = Function::of(kernel);
            helpers.extend(&function.helpers);
            let names: Vec<String> = function.reads.iter().chain(&function.writes).cloned().collect();
            let count = known.len();
            let name = known.entry((function.body.clone(), names)).or_insert_with(|| {
                let name = format!("{}_{count}", function.word);
                let reads = function.reads.iter().map(|read| format!("const float *{read}"));
                let writes = function.writes.iter().map(|write| format!("float *restrict {write}"));
                let arguments = reads.chain(writes).collect::<Vec<_>>().join(", ");
                let _ = write!(functions, "static void {name}({arguments})\n{{\n{}}}\n\n", function.body);
                name
            });
            let arguments: Vec<String> =
                function.arguments.iter().map(|view| self.pointer(view, inputs, outputs)).collect();
            let _ = writeln!(calls, "        {name}({});", arguments.join(", "));
        }
        for (_, helper) in HELPERS.iter().filter(|(name, _)| helpers.contains(name)) {
            let _ = write!(text, "{helper}\n\n");
        }
        text.push_str(&functions);
        let null: Vec<String> =
            inputs.iter().chain(outputs).chain([&"workspace".to_owned()]).map(|name| format!("!{name}")).collect();
        let moved = |ports: &[Port], names: &[String]| -> String {
            let line = |(port, name): (&Port, &String)| {
                format!("        {name} += {};\n", port.shape.iter().product::<usize>())
            };
            ports.iter().zip(names).map(line).collect()
        };
        let _ = write!(
            text,
            "{}\n{{\n    if ({})\n        return 1;\n    for (size_t sample = 0; sample < samples; sample++) {{\n{calls}{}{}    }}\n    return 0;\n}}\n",
            CModel::prototype((inputs, outputs)),
            null.join(" || "),
            moved(&self.inputs, inputs),
            moved(&self.outputs, outputs),
        );
        text
    }

    fn pointer(&self, view: &View, inputs: &[String], outputs: &[String]) -> String {
        let (base, start) = match &self.buffers[view.buffer].place {
            Place::Input(number) => (inputs[*number].as_str(), 0),
            Place::Output(number) => (outputs[*number].as_str(), 0),
            Place::Weights(start) => ("weights", *start),
            Place::Work(start) => ("workspace", *start),
        };
        match start as isize + view.offset {
            0 => base.to_owned(),
            offset => format!("{base} + {offset}"),
        }
    }

    fn write_weights(&self, text: &mut String) {
        if !self.kernels.iter().any(|kernel| self.reads_weights(kernel)) {
            return;
        }
        let _ = writeln!(text, "static const float weights[{}] = {{", self.weights.len());
        for chunk in self.weights.chunks(12) {
            let numbers: Vec<String> = chunk.iter().map(|&number| literal(number)).collect();
            let _ = writeln!(text, "    {},", numbers.join(", "));
        }
        text.push_str("};\n\n");
    }

    fn reads_weights(&self, kernel: &super::kernel::Kernel) -> bool {
        Function::of(kernel).arguments.iter().any(|view| matches!(self.buffers[view.buffer].place, Place::Weights(_)))
    }
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ").replace("*/", "* /")
}

fn comment(about: &Metadata) -> String {
    let lines = about.iter().map(|(key, value)| format!(" * {}: {}\n", one_line(key), one_line(value)));
    format!("/* A neural operator that lamo exported.\n{} */\n", lines.collect::<String>())
}
