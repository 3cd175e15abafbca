//! The parameters of a problem as data: name, kind, default, unit and meaning. Texts of the form `key=value` set them.

use std::fmt;

use crate::Error;

/// One parameter that a user can set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// The key in `key=value`.
    pub name: &'static str,
    /// The accepted values and the default.
    pub kind: Kind,
    /// Unit of the value; `1` for a dimensionless one.
    pub unit: &'static str,
    /// One sentence for the help text.
    pub meaning: &'static str,
}

/// A parameter that an earlier version had. Records of that version still name it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Removed {
    /// The key in `key=value`.
    pub name: &'static str,
    /// The last default.
    pub default: Value,
    /// Why it is gone, for the refusal.
    pub reason: &'static str,
}

/// The accepted values of a parameter, and its default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A whole number from `least` to `most`, both included.
    Whole {
        /// The default.
        default: usize,
        /// Smallest value accepted.
        least: usize,
        /// Largest value accepted.
        most: usize,
    },
    /// A finite number above 0.
    Positive {
        /// The default.
        default: f64,
    },
    /// A finite number of at least 0.
    NonNegative {
        /// The default.
        default: f64,
    },
    /// A number from `least` to `most`, both included.
    Within {
        /// The default.
        default: f64,
        /// Smallest value accepted.
        least: f64,
        /// Largest value accepted.
        most: f64,
    },
    /// Any finite number.
    Real {
        /// The default.
        default: f64,
    },
    /// `true` or `false`.
    Switch {
        /// The default.
        default: bool,
    },
    /// One of a few words.
    Choice {
        /// The default.
        default: &'static str,
        /// The words.
        words: &'static [&'static str],
    },
}

/// The value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A value of [`Kind::Whole`].
    Whole(usize),
    /// A value of one of the kinds of real numbers.
    Real(f64),
    /// A value of [`Kind::Switch`].
    Switch(bool),
    /// A value of [`Kind::Choice`].
    Choice(&'static str),
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(value) => write!(formatter, "{value}"),
            Self::Real(value) => write!(formatter, "{value:?}"), // `?` prints every digit and the exponent
            Self::Switch(value) => write!(formatter, "{value}"),
            Self::Choice(value) => write!(formatter, "{value}"),
        }
    }
}

impl Kind {
    /// The default.
    pub fn default_value(&self) -> Value {
        match *self {
            Self::Whole { default, .. } => Value::Whole(default),
            Self::Within { default, .. } => Value::Real(default),
            Self::Positive { default } | Self::NonNegative { default } | Self::Real { default } => Value::Real(default),
            Self::Switch { default } => Value::Switch(default),
            Self::Choice { default, .. } => Value::Choice(default),
        }
    }

    /// The accepted values in words, for error messages and help texts.
    pub fn expected(&self) -> String {
        match self {
            Self::Whole { least, most, .. } => format!("a whole number from {least} to {most}"),
            Self::Positive { .. } => "a number above 0".into(),
            Self::NonNegative { .. } => "a number of at least 0".into(),
            Self::Within { least, most, .. } => format!("a number from {least} to {most}"),
            Self::Real { .. } => "a finite number".into(),
            Self::Switch { .. } => "true or false".into(),
            Self::Choice { words, .. } => words.join(" or "),
        }
    }

    /// The value that `text` stands for; `None` when it is not accepted.
    pub fn parse(&self, text: &str) -> Option<Value> {
        let real = |accepted: &dyn Fn(f64) -> bool| {
            let value = text.parse().ok().filter(|value: &f64| value.is_finite())?;
            accepted(value).then_some(Value::Real(value))
        };
        match self {
            Self::Whole { least, most, .. } => {
                text.parse().ok().filter(|value| (least..=most).contains(&value)).map(Value::Whole)
            }
            Self::Positive { .. } => real(&|value| value > 0.0),
            Self::NonNegative { .. } => real(&|value| value >= 0.0),
            Self::Within { least, most, .. } => real(&|value| (*least..=*most).contains(&value)),
            Self::Real { .. } => real(&|_| true),
            Self::Switch { .. } => text.parse().ok().map(Value::Switch),
            Self::Choice { words, .. } => words.iter().find(|&&word| word == text).map(|word| Value::Choice(word)),
        }
    }
}

/// A value for every parameter of one problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    problem: &'static str,
    parameters: &'static [Parameter],
    values: Vec<Value>,
}

impl Settings {
    /// Starts from the defaults and applies each `key=value` in turn; a later setting replaces an earlier one.
    pub fn new<Text: AsRef<str>>(
        problem: &'static str,
        parameters: &'static [Parameter],
        changes: &[Text],
    ) -> Result<Self, Error> {
        let values = parameters.iter().map(|parameter| parameter.kind.default_value()).collect();
        let mut settings = Self { problem, parameters, values };
        for change in changes {
            settings.set(change.as_ref())?;
        }
        Ok(settings)
    }

    fn set(&mut self, change: &str) -> Result<(), Error> {
        let problem = self.problem;
        let Some((key, text)) = change.split_once('=') else {
            return Err(Error::MalformedSetting { problem, found: change.into() });
        };
        let (key, text) = (key.trim(), text.trim());
        let Some(index) = self.parameters.iter().position(|parameter| parameter.name == key) else {
            let names: Vec<_> = self.parameters.iter().map(|parameter| parameter.name).collect();
            return Err(Error::UnknownParameter { problem, expected: names.join(", "), found: key.into() });
        };
        let Parameter { name, kind, .. } = self.parameters[index];
        self.values[index] = kind.parse(text).ok_or_else(|| self.refuse(name, kind.expected(), text))?;
        Ok(())
    }

    /// These settings with one parameter changed; refuses a value outside its range.
    pub(crate) fn with(&self, key: &str, value: impl fmt::Display) -> Result<Self, Error> {
        let mut settings = self.clone();
        settings.set(&format!("{key}={value}"))?;
        Ok(settings)
    }

    /// The error for a value that parses but contradicts another parameter.
    pub(crate) fn refuse(&self, key: &'static str, expected: String, found: impl fmt::Display) -> Error {
        Error::BadValue { problem: self.problem, key, expected, found: found.to_string() }
    }

    /// Each parameter with its value, in the order of declaration; a manifest records them.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Parameter, Value)> {
        self.parameters.iter().zip(self.values.iter().copied())
    }

    fn value(&self, key: &str) -> Value {
        let found = self.iter().find(|(parameter, _)| parameter.name == key);
        found.unwrap_or_else(|| panic!("{} declares no parameter `{key}`", self.problem)).1
    }

    /// The whole number `key`; panics if the problem declares no such parameter.
    pub fn whole(&self, key: &str) -> usize {
        match self.value(key) {
            Value::Whole(value) => value,
            other => panic!("{} declares `{key}` as {other:?}, not a whole number", self.problem),
        }
    }

    /// The real number `key`; panics if the problem declares no such parameter.
    pub fn real(&self, key: &str) -> f64 {
        match self.value(key) {
            Value::Real(value) => value,
            other => panic!("{} declares `{key}` as {other:?}, not a real number", self.problem),
        }
    }

    /// The switch `key`; panics if the problem declares no such parameter.
    pub fn switch(&self, key: &str) -> bool {
        match self.value(key) {
            Value::Switch(value) => value,
            other => panic!("{} declares `{key}` as {other:?}, not a switch", self.problem),
        }
    }

    /// The chosen word `key`; panics if the problem declares no such parameter.
    pub fn choice(&self, key: &str) -> &'static str {
        match self.value(key) {
            Value::Choice(value) => value,
            other => panic!("{} declares `{key}` as {other:?}, not a choice", self.problem),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMETERS: &[Parameter] = &[
        Parameter {
            name: "points",
            kind: Kind::Whole { default: 8, least: 2, most: 64 },
            unit: "1",
            meaning: "points of the grid",
        },
        Parameter { name: "viscosity", kind: Kind::Positive { default: 1e-5 }, unit: "1", meaning: "ν" },
        Parameter {
            name: "share",
            kind: Kind::Within { default: 0.5, least: 0.25, most: 1.0 },
            unit: "1",
            meaning: "share of the total",
        },
    ];

    #[test]
    fn a_later_setting_of_the_same_parameter_replaces_an_earlier_one() {
        let settings = Settings::new("test", PARAMETERS, &["points=4", "points = 16"]).unwrap();
        assert_eq!((settings.whole("points"), settings.real("viscosity")), (16, 1e-5));
    }

    #[test]
    fn printed_values_parse_back_to_the_same_bits() {
        let settings = Settings::new("test", PARAMETERS, &["viscosity=0.1234567890123e-17"]).unwrap();
        for (parameter, value) in settings.iter() {
            assert_eq!(parameter.kind.parse(&value.to_string()), Some(value));
        }
    }

    #[test]
    fn errors_name_the_key_the_expected_and_the_found_value() {
        let message = |change: &str| Settings::new("test", PARAMETERS, &[change]).unwrap_err().to_string();
        assert_eq!(message("points=1"), "test: parameter `points` expects a whole number from 2 to 64, found `1`");
        assert_eq!(message("viscosity=-1"), "test: parameter `viscosity` expects a number above 0, found `-1`");
        assert_eq!(message("viscosity=nan"), "test: parameter `viscosity` expects a number above 0, found `nan`");
        assert_eq!(message("share=2"), "test: parameter `share` expects a number from 0.25 to 1, found `2`");
        assert_eq!(message("speed=1"), "test: unknown parameter `speed`, expected one of points, viscosity, share");
        assert_eq!(message("points"), "test: expected a setting of the form key=value, found `points`");
    }
}
