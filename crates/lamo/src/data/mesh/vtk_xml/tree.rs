//! The elements of a VTK XML file. Numbers stay in the file: an element knows from which byte to which byte its text goes.

use crate::data::mesh::input::{CUT, Input, Opened, broken};
use crate::error::Refusal;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use std::io::BufRead;

/// Elements inside each other at most; VTK needs six.
const DEEPEST: usize = 32;

/// One element.
#[derive(Debug, Default)]
pub(super) struct Element {
    pub(super) name: String,
    attributes: Vec<(String, String)>,
    pub(super) children: Vec<Element>,
    /// First byte of the text and the byte after it; empty where there is none.
    pub(super) text: (u64, u64),
}

/// A whole file.
pub(super) struct Document {
    pub(super) root: Element,
    /// The byte after the underscore with which appended data begin.
    pub(super) appended: Option<u64>,
    /// Whether appended data are text.
    pub(super) appended_base64: bool,
}

impl Element {
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// An attribute as a number.
    pub(super) fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, Refusal> {
        let Some(text) = self.attribute(name) else { return Ok(None) };
        text.trim().parse().map(Some).map_err(|_| self.refuse(name, "a number", text))
    }

    /// An attribute as numbers.
    pub(super) fn numbers<T: std::str::FromStr, const N: usize>(&self, name: &str) -> Result<Option<[T; N]>, Refusal> {
        let Some(text) = self.attribute(name) else { return Ok(None) };
        let numbers: Option<Vec<T>> = text.split_whitespace().map(|word| word.parse().ok()).collect();
        let numbers = numbers.and_then(|numbers| numbers.try_into().ok());
        numbers.map(Some).ok_or_else(|| self.refuse(name, &format!("{N} numbers"), text))
    }

    fn refuse(&self, attribute: &str, expected: &str, found: &str) -> Refusal {
        Refusal::new(format!("{} of {}", attribute, self.name), expected, format!("`{}`", found.escape_debug()))
    }

    pub(super) fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name == name)
    }

    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |child| child.name == name)
    }
}

/// Reads all elements up to the appended data.
pub(super) fn read(opened: &Opened) -> Result<Document, Refusal> {
    let mut reader = Reader::from_reader(opened.whole()?);
    let mut open: Vec<Element> = Vec::new();
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        let event = reader.read_event_into(&mut buffer);
        let event =
            event.map_err(|error| Refusal::new("XML", "well-formed elements", error.to_string()).advise(CUT))?;
        let finished = match event {
            Event::Start(start) if start.name().into_inner() == "AppendedData" => {
                let base64 = element(&start)?.attribute("encoding") == Some("base64");
                let appended = find_underscore(reader.get_mut())?;
                let root = close_all(open).ok_or_else(|| Refusal::new("XML", "VTKFile", "AppendedData alone"))?;
                return Ok(Document { root, appended: Some(appended), appended_base64: base64 });
            }
            Event::Start(start) => {
                let mut new = element(&start)?;
                new.text = skip_text(reader.get_mut())?;
                open.push(new);
                if open.len() > DEEPEST {
                    return Err(Refusal::new("XML", format!("at most {DEEPEST} elements inside each other"), "more"));
                }
                None
            }
            Event::Empty(start) => Some(element(&start)?),
            Event::End(_) => {
                let done = open.pop();
                if let Some(parent) =
                    open.last_mut().filter(|parent| is_array(parent) && parent.text.0 == parent.text.1)
                {
                    parent.text = skip_text(reader.get_mut())?; // the numbers come after the information about them
                }
                done
            }
            Event::Eof => return Err(Refusal::new("XML", "the end of VTKFile", "the end of the file").advise(CUT)),
            _ => None,
        };
        let Some(finished) = finished else { continue };
        match open.last_mut() {
            Some(parent) => parent.children.push(finished),
            None => return Ok(Document { root: finished, appended: None, appended_base64: false }),
        }
    }
}

fn is_array(element: &Element) -> bool {
    element.name == "DataArray"
}

/// Elements that are still open, as they would be closed.
fn close_all(mut open: Vec<Element>) -> Option<Element> {
    let mut inner = open.pop()?;
    while let Some(mut outer) = open.pop() {
        outer.children.push(inner);
        inner = outer;
    }
    Some(inner)
}

fn element(start: &BytesStart) -> Result<Element, Refusal> {
    let name = start.name().into_inner().to_owned();
    let wrong = |error: &dyn std::fmt::Display| Refusal::new(name.clone(), "attributes in quotes", error.to_string());
    let mut attributes = Vec::new();
    for attribute in start.attributes() {
        let attribute = attribute.map_err(|error| wrong(&error))?;
        let value = attribute.normalized_value(XmlVersion::Implicit1_0);
        let value = value.unwrap_or(attribute.value.clone()); // VTK itself writes & in names as it is
        attributes.push((attribute.key.into_inner().to_owned(), value.into_owned()));
    }
    Ok(Element { name, attributes, ..Element::default() })
}

/// Goes to the next `<`. Where the text between begins and ends, without the blanks before it.
fn skip_text(input: &mut Input) -> Result<(u64, u64), Refusal> {
    let mut start = None;
    loop {
        let bytes = input.fill_buf().map_err(|reason| broken(&reason))?;
        if bytes.is_empty() {
            return Err(Refusal::new("XML", "a closing tag", "the end of the file").advise(CUT));
        }
        let end = bytes.iter().position(|&byte| byte == b'<');
        let text = &bytes[..end.unwrap_or(bytes.len())];
        let (count, first) = (text.len(), text.iter().position(|byte| !byte.is_ascii_whitespace()));
        if let (None, Some(first)) = (start, first) {
            start = Some(input.position + first as u64);
        }
        input.consume(count);
        if end.is_some() {
            return Ok((start.unwrap_or(input.position), input.position));
        }
    }
}

/// Appended data begin after an underscore, which only blanks may precede.
fn find_underscore(input: &mut Input) -> Result<u64, Refusal> {
    input.skip_space()?;
    match input.peek()? {
        Some(b'_') => Ok(input.position + 1),
        Some(byte) => Err(Refusal::new("AppendedData", "an underscore", format!("the byte {byte:#04x}"))),
        None => Err(Refusal::new("AppendedData", "an underscore", "the end of the file").advise(CUT)),
    }
}
