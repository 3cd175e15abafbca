//! The tensors that a pickle of `torch.save` describes. A pickle is a program for a machine with a stack and numbered memories
//! (Python's `pickletools` has all its instructions); this machine knows containers, numbers, texts and tensors. Nothing of
//! Python runs: any other object is an empty container.

use super::super::array::ElementKind;
use std::collections::HashMap;
use std::rc::Rc;

/// Containers inside containers at most.
const DEEPEST: usize = 64;
/// Containers and values that are looked at for tensors; a few bytes can name the same container very often.
const MOST_VALUES: usize = 1 << 20;

/// A tensor: a view of the numbers of a storage, which is a file of the archive.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tensor {
    pub(super) storage: Rc<str>,
    pub(super) kind: ElementKind,
    /// Place of its first number in the storage.
    pub(super) offset: usize,
    pub(super) shape: Vec<usize>,
    /// Distance of neighbours along each axis.
    pub(super) strides: Vec<usize>,
    /// Whether the numbers are to be conjugated or negated after reading.
    pub(super) lazy: bool,
}

/// What the machine computes with.
#[derive(Clone, Debug)]
enum Value {
    Integer(i64),
    Text(Rc<str>),
    /// A name of Python: module and name.
    Global(Rc<str>),
    /// Key of the storage, and the type of its numbers where the storage has one.
    Storage(Rc<str>, Option<ElementKind>),
    Tensor(Rc<Tensor>),
    /// A list, tuple, dictionary or object, by its number in [`Machine::containers`].
    Container(usize),
    Other,
}

/// The values of a container, with their keys; the state of an object has no key.
type Items = Vec<(Rc<str>, Value)>;

#[derive(Default)]
struct Machine {
    stack: Vec<Value>,
    /// Heights of the stack at which groups of values begin.
    marks: Vec<usize>,
    memory: HashMap<usize, Value>,
    containers: Vec<Items>,
}

/// The tensors of a pickle with their names: keys and numbers of the containers around them, apart by `/`. An error says what was
/// found instead of a pickle.
pub(super) fn tensors(bytes: &[u8]) -> Result<Vec<(String, Rc<Tensor>)>, String> {
    let mut machine = Machine::default();
    let root = machine.run(bytes)?;
    let (mut found, mut left) = (Vec::new(), MOST_VALUES);
    machine.collect(&root, String::new(), DEEPEST, &mut left, &mut found)?;
    Ok(found)
}

/// The bytes that are left of the program.
struct Program<'a>(&'a [u8]);

impl<'a> Program<'a> {
    fn bytes(&mut self, count: u64) -> Result<&'a [u8], String> {
        let taken = usize::try_from(count).ok().and_then(|count| self.0.split_at_checked(count));
        let (taken, rest) = taken.ok_or("an early end")?;
        self.0 = rest;
        Ok(taken)
    }

    /// A number without sign in `width` bytes.
    fn number(&mut self, width: u64) -> Result<u64, String> {
        let bytes = self.bytes(width)?;
        Ok(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    fn text(&mut self, width: u64) -> Result<Rc<str>, String> {
        let length = self.number(width)?;
        Ok(String::from_utf8_lossy(self.bytes(length)?).into())
    }

    fn line(&mut self) -> Result<String, String> {
        let end = self.0.iter().position(|&byte| byte == b'\n').ok_or("an early end")?;
        let line = self.bytes(end as u64 + 1)?;
        Ok(String::from_utf8_lossy(&line[..end]).into_owned())
    }
}

/// A number with sign in as many bytes as there are, at most eight.
fn signed(bytes: &[u8]) -> Option<i64> {
    let negative = bytes.last().is_some_and(|&byte| byte & 0x80 != 0);
    let filling = if negative { -1 } else { 0 };
    (bytes.len() <= 8).then(|| bytes.iter().rev().fold(filling, |number, &byte| number << 8 | i64::from(byte)))
}

impl Machine {
    /// Runs the program to its end; its result.
    fn run(&mut self, bytes: &[u8]) -> Result<Value, String> {
        let mut program = Program(bytes);
        loop {
            let code = program.bytes(1)?[0];
            if code == b'.' {
                return self.pop();
            }
            self.step(code, &mut program)?;
        }
    }

    fn step(&mut self, code: u8, program: &mut Program) -> Result<(), String> {
        match code {
            0x80 => drop(program.bytes(1)?), // the version
            0x95 => drop(program.bytes(8)?), // the length of a frame
            b'(' => self.marks.push(self.stack.len()),
            b'0' => drop(self.pop()?),
            b'1' => drop(self.since_mark()?),
            b'2' => {
                let top = self.stack.last().cloned().ok_or("an empty stack")?;
                self.stack.push(top);
            }
            b'N' => self.stack.push(Value::Other),
            0x88 => self.stack.push(Value::Integer(1)),
            0x89 => self.stack.push(Value::Integer(0)),
            b'K' | b'M' | b'J' | 0x8a | 0x8b | b'G' => self.constant(code, program)?,
            b'X' | b'T' => self.stack.push(Value::Text(program.text(4)?)),
            0x8c | b'U' => self.stack.push(Value::Text(program.text(1)?)),
            0x8d => self.stack.push(Value::Text(program.text(8)?)),
            b'C' | b'B' | 0x8e | 0x96 => {
                let width = match code {
                    b'C' => 1,
                    b'B' => 4,
                    _ => 8,
                };
                let length = program.number(width)?;
                program.bytes(length)?;
                self.stack.push(Value::Other);
            }
            b'c' => {
                let name = [program.line()?, program.line()?].join(" ");
                self.stack.push(Value::Global(name.into()));
            }
            0x93 => {
                let name = self.pop()?;
                let (Value::Text(module), Value::Text(name)) = (self.pop()?, name) else {
                    return Err("a name that is no text".into());
                };
                self.stack.push(Value::Global(format!("{module} {name}").into()));
            }
            b'q' | b'r' | 0x94 => self.remember(code, program)?,
            b'h' | b'j' => {
                let place = program.number(if code == b'h' { 1 } else { 4 })? as usize;
                let value = self.memory.get(&place).cloned().ok_or("an empty memory")?;
                self.stack.push(value);
            }
            _ => return self.build(code),
        }
        Ok(())
    }

    fn constant(&mut self, code: u8, program: &mut Program) -> Result<(), String> {
        let width = match code {
            b'K' => 1,
            b'M' => 2,
            b'J' => 4,
            b'G' => 8,
            0x8a => program.number(1)?,
            _ => program.number(4)?,
        };
        let bytes = program.bytes(width)?;
        let number = match code {
            b'G' => None,
            b'K' | b'M' => Some(bytes.iter().rev().fold(0, |number, &byte| number << 8 | i64::from(byte))),
            _ => signed(bytes),
        };
        self.stack.push(number.map_or(Value::Other, Value::Integer));
        Ok(())
    }

    fn remember(&mut self, code: u8, program: &mut Program) -> Result<(), String> {
        let place = match code {
            b'q' => program.number(1)? as usize,
            b'r' => program.number(4)? as usize,
            _ => self.memory.len(),
        };
        let top = self.stack.last().cloned().ok_or("an empty stack")?;
        self.memory.insert(place, top);
        Ok(())
    }

    /// The instructions that make containers, storages and tensors.
    fn build(&mut self, code: u8) -> Result<(), String> {
        match code {
            b')' | b']' | b'}' | 0x8f => self.push_container(Vec::new()),
            b't' | b'l' | 0x91 => {
                let values = self.since_mark()?;
                self.push_container(numbered(values));
            }
            0x85..=0x87 => {
                let count = usize::from(code - 0x84);
                let from = self.stack.len().checked_sub(count).ok_or("an empty stack")?;
                let values = self.stack.split_off(from);
                self.push_container(numbered(values));
            }
            b'd' => {
                let values = self.since_mark()?;
                self.push_container(keyed(values));
            }
            b'a' => {
                let value = self.pop()?;
                self.extend(vec![value], false)?;
            }
            b'e' | 0x90 => {
                let values = self.since_mark()?;
                self.extend(values, false)?;
            }
            b's' => {
                let value = self.pop()?;
                let key = self.pop()?;
                self.extend(vec![key, value], true)?;
            }
            b'u' => {
                let values = self.since_mark()?;
                self.extend(values, true)?;
            }
            b'Q' => {
                let named = self.pop()?;
                let storage = self.storage(&named);
                self.stack.push(storage);
            }
            b'R' | 0x81 => {
                let arguments = self.pop()?;
                let callee = self.pop()?;
                let made = self.call(&callee, &arguments, DEEPEST);
                self.push_made(made);
            }
            0x92 => {
                self.pop()?;
                self.pop()?;
                self.pop()?;
                self.push_container(Vec::new());
            }
            b'b' => self.set_state()?,
            other => return Err(format!("the instruction {other:#04x}")),
        }
        Ok(())
    }

    fn pop(&mut self) -> Result<Value, String> {
        self.stack.pop().ok_or_else(|| "an empty stack".to_owned())
    }

    /// Takes the values above the last mark.
    fn since_mark(&mut self) -> Result<Vec<Value>, String> {
        let mark = self.marks.pop().filter(|&mark| mark <= self.stack.len());
        Ok(self.stack.split_off(mark.ok_or("no mark")?))
    }

    fn push_container(&mut self, items: Items) {
        self.stack.push(Value::Container(self.containers.len()));
        self.containers.push(items);
    }

    /// An object that is unknown is an empty container, so that its state can be looked at.
    fn push_made(&mut self, made: Option<Value>) {
        match made {
            Some(value) => self.stack.push(value),
            None => self.push_container(Vec::new()),
        }
    }

    /// Adds values to the container on the stack, or keys and values.
    fn extend(&mut self, values: Vec<Value>, with_keys: bool) -> Result<(), String> {
        match self.stack.last() {
            Some(Value::Container(number)) => {
                let items = &mut self.containers[*number];
                let first = items.len();
                items.extend(if with_keys { keyed(values) } else { numbered(values) });
                if !with_keys {
                    (first..).zip(&mut items[first..]).for_each(|(place, (key, _))| *key = place.to_string().into());
                }
                Ok(())
            }
            Some(_) => Ok(()),
            None => Err("an empty stack".into()),
        }
    }

    /// Gives the object on the stack its state.
    fn set_state(&mut self) -> Result<(), String> {
        let state = self.pop()?;
        if let Some(Value::Container(object)) = self.stack.last() {
            self.containers[*object].push(("".into(), state));
        }
        Ok(())
    }

    fn items(&self, value: &Value) -> &[(Rc<str>, Value)] {
        match value {
            Value::Container(number) => &self.containers[*number],
            _ => &[],
        }
    }

    /// `("storage", type, key, place, count)`
    fn storage(&self, named: &Value) -> Value {
        match self.items(named) {
            [(_, Value::Text(what)), (_, Value::Global(kind)), (_, Value::Text(key)), ..] if **what == *"storage" => {
                Value::Storage(Rc::clone(key), storage_kind(kind))
            }
            _ => Value::Other,
        }
    }

    /// What a function of PyTorch makes of its arguments; `None` for other functions.
    fn call(&self, callee: &Value, arguments: &Value, depth: usize) -> Option<Value> {
        let Value::Global(name) = callee else { return None };
        let items = self.items(arguments);
        let argument = |place: usize| items.get(place).map(|(_, value)| value);
        // `{"conj": True}`, `{"neg": True}`
        let lazy = |place: usize| {
            let marks = argument(place).map(|marks| self.items(marks)).unwrap_or_default();
            marks.iter().any(|(_, mark)| !matches!(mark, Value::Integer(0)))
        };
        match &**name {
            "torch._utils _rebuild_tensor" => self.tensor(items, None, false),
            "torch._utils _rebuild_tensor_v2" => self.tensor(items, None, lazy(6)),
            "torch._utils _rebuild_tensor_v3" => {
                let Value::Global(kind) = argument(6)? else { return None };
                self.tensor(items, tensor_kind(kind), lazy(7))
            }
            "torch._utils _rebuild_parameter" | "torch._utils _rebuild_parameter_with_state" => argument(0).cloned(),
            "torch._tensor _rebuild_from_type_v2" if depth > 0 => self.call(argument(0)?, argument(2)?, depth - 1),
            _ => None,
        }
    }

    /// `(storage, offset, shape, strides, ...)`
    fn tensor(&self, items: &[(Rc<str>, Value)], given: Option<ElementKind>, lazy: bool) -> Option<Value> {
        let [(_, Value::Storage(storage, own)), (_, Value::Integer(offset)), (_, shape), (_, strides), ..] = items
        else {
            return None;
        };
        let extents = |value: &Value| -> Option<Vec<usize>> {
            let number = |(_, value): &(Rc<str>, Value)| match value {
                Value::Integer(number) => usize::try_from(*number).ok(),
                _ => None,
            };
            self.items(value).iter().map(number).collect()
        };
        let (shape, strides) = (extents(shape)?, extents(strides)?);
        let (kind, offset) = (given.or(*own)?, usize::try_from(*offset).ok()?);
        let fits = shape.len() == strides.len();
        fits.then(|| Value::Tensor(Rc::new(Tensor { storage: Rc::clone(storage), kind, offset, shape, strides, lazy })))
    }

    /// Appends the tensors in a value.
    fn collect(
        &self,
        value: &Value,
        name: String,
        depth: usize,
        left: &mut usize,
        found: &mut Vec<(String, Rc<Tensor>)>,
    ) -> Result<(), String> {
        *left = left.checked_sub(1).ok_or_else(|| format!("more than {MOST_VALUES} values"))?;
        match value {
            Value::Tensor(tensor) => found.push((name, Rc::clone(tensor))),
            Value::Container(number) => {
                let deeper =
                    depth.checked_sub(1).ok_or_else(|| format!("more than {DEEPEST} containers inside each other"))?;
                for (key, value) in &self.containers[*number] {
                    let name = match (name.is_empty(), key.is_empty()) {
                        (true, _) => key.to_string(),
                        (false, true) => name.clone(),
                        (false, false) => format!("{name}/{key}"),
                    };
                    self.collect(value, name, deeper, left, found)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Values with their places as keys.
fn numbered(values: Vec<Value>) -> Items {
    values.into_iter().enumerate().map(|(place, value)| (place.to_string().into(), value)).collect()
}

/// Keys and values in turn.
fn keyed(values: Vec<Value>) -> Items {
    let mut values = values.into_iter();
    let mut items = Vec::new();
    while let (Some(key), Some(value)) = (values.next(), values.next()) {
        let key = match key {
            Value::Text(key) => key,
            Value::Integer(key) => key.to_string().into(),
            _ => items.len().to_string().into(),
        };
        items.push((key, value));
    }
    items
}

/// The numbers of a typed storage.
fn storage_kind(name: &str) -> Option<ElementKind> {
    Some(match name.strip_prefix("torch ")?.strip_suffix("Storage")? {
        "Half" => ElementKind::F16,
        "BFloat16" => ElementKind::Bf16,
        "Float" => ElementKind::F32,
        "Double" => ElementKind::F64,
        "Char" => ElementKind::I8,
        "Short" => ElementKind::I16,
        "Int" => ElementKind::I32,
        "Long" => ElementKind::I64,
        "Byte" => ElementKind::U8,
        "Bool" => ElementKind::Bool,
        "ComplexFloat" => ElementKind::C64,
        "ComplexDouble" => ElementKind::C128,
        _ => return None,
    })
}

/// The numbers of a tensor whose storage has no type.
fn tensor_kind(name: &str) -> Option<ElementKind> {
    Some(match name.strip_prefix("torch ")? {
        "uint16" => ElementKind::U16,
        "uint32" => ElementKind::U32,
        "uint64" => ElementKind::U64,
        "float16" => ElementKind::F16,
        "bfloat16" => ElementKind::Bf16,
        "float32" => ElementKind::F32,
        "float64" => ElementKind::F64,
        "int8" => ElementKind::I8,
        "int16" => ElementKind::I16,
        "int32" => ElementKind::I32,
        "int64" => ElementKind::I64,
        "uint8" => ElementKind::U8,
        "bool" => ElementKind::Bool,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_that_name_each_other_again_and_again_end_in_a_sentence() {
        let mut doubled = b"\x80\x02]q\x00".to_vec(); // a list, memory 0
        for level in 0..40 {
            doubled.extend([b']', b'q', level + 1, b'(', b'h', level, b'h', level, b'e']); // a list of the last list, twice
        }
        doubled.push(b'.');
        assert_eq!(tensors(&doubled).unwrap_err(), "more than 1048576 values");
        assert_eq!(tensors(b"\x80\x02]q\x00h\x00a.").unwrap_err(), "more than 64 containers inside each other");
        for program in [&b""[..], b"\x80\x02", b"a.", b"h\x07.", b"(((.", b"R.", b"X\xff\xff\xff\xffa.", b"\xff."] {
            assert!(tensors(program).is_err(), "{program:?}");
        }
        assert_eq!(tensors(b"\x80\x02}.").unwrap(), []);
    }
}
