//! Which samples of an import are for training and which for testing, where the user gives no rule.
//!
//! Files that say `train` and `test` in their names decide. Windows of one time series are split in time: the last ones
//! are for testing, and windows that share snapshots with them are dropped. Windows of several time series are split by
//! whole series. All other samples are drawn with a seed: the first and the last samples of a parameter sweep would
//! train on one end of it and test on the other.

use super::column::Column;
use super::windows::Windows;
use crate::data::dataset::{Error, Rule};
use crate::error::counted;
use crate::random::shuffle;
use std::path::Path;

/// Samples of a list at most: a manifest has sixteen million bytes.
const MOST_LISTED: usize = 1 << 20;

/// What the user says about the split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Samples to train on.
    pub train: Option<usize>,
    /// Samples to test on.
    pub test: Option<usize>,
    /// Seed of the draw; 0 unless given. A given seed also draws where the names of the files say which samples are which.
    pub seed: Option<u64>,
    /// Trains on the first samples and tests on the last, in the order of the files.
    pub ordered: bool,
}

/// A rule, and what the user should know about it.
pub(super) type Chosen = (Rule, Option<String>);

impl Sizes {
    /// The rule for an import. `series` are the windows, and how many of them each time series has.
    pub(super) fn choose(
        self,
        samples: usize,
        columns: &[Column],
        series: Option<(Windows, &[usize])>,
    ) -> Result<Chosen, Error> {
        if let Some((windows, [count])) = series {
            return self.in_time(windows, *count);
        }
        if let Some(labels) = labels(columns)?.filter(|_| !self.ordered && self.seed.is_none()) {
            return self.by_files(&labels);
        }
        if let Some((_, counts)) = series {
            return self.by_series(counts, samples);
        }
        let [train, test] = self.numbers(samples);
        let drawn = Rule::Random { train, test, seed: self.seed.unwrap_or(0) };
        Ok((if self.ordered { Rule::Ends { train, test } } else { drawn }, None))
    }

    /// Samples to train and to test on: a number that is not given is the rest, or a sixth of the samples to test on.
    fn numbers(self, samples: usize) -> [usize; 2] {
        let Rule::Ends { train, test } = Rule::default_for(samples) else { return [samples, 0] };
        match (self.train, self.test) {
            (None, None) => [train, test],
            (Some(train), None) => [train, samples.saturating_sub(train)],
            (None, Some(test)) => [samples.saturating_sub(test), test],
            (Some(train), Some(test)) => [train, test],
        }
    }

    /// The last windows of one time series are for testing.
    fn in_time(self, windows: Windows, count: usize) -> Result<Chosen, Error> {
        let enough = |train: usize| (0..count).find(|&first| windows.before(first) >= train);
        let first = match (self.train, self.test) {
            (_, Some(test)) => count.checked_sub(test),
            (Some(train), None) => enough(train),
            (None, None) => Some(self.numbers(count)[0]),
        };
        let available = first.map_or(0, |first| windows.before(first));
        let train = self.train.unwrap_or(available);
        let Some(first) = first.filter(|_| train <= available && (train > 0 || self.train.is_some())) else {
            let asked = |size: Option<usize>| size.map_or("some".to_owned(), |size| size.to_string());
            let expected = format!(
                "windows to train on that end before the first of the {} windows to test on begins",
                self.test.map_or_else(|| "last".to_owned(), |test| format!("last {test}"))
            );
            let found = format!("{available} of {}, {} asked for", counted(count, "window"), asked(self.train));
            let advice = "give smaller numbers with --window, --horizon, --train or --test";
            return Err(Error::unfit("the import".into(), expected, found, advice));
        };
        let (test, sharing) = (count - first, first - available);
        let mut left = vec![format!("{sharing} between them dropped because they share snapshots with both")];
        left.extend((available > train).then(|| format!("{} not asked for", available - train)));
        let note = format!(
            "{} of one time series, split in time: the first {train} to train, the last {test} to test, {}",
            counted(count, "window"),
            left.join(", ")
        );
        Ok((Rule::Ranges { train: [0, train], test: [first, count] }, Some(note)))
    }

    /// Whole time series are for training or for testing.
    fn by_series(self, counts: &[usize], samples: usize) -> Result<Chosen, Error> {
        let mut order: Vec<usize> = (0..counts.len()).collect();
        if !self.ordered {
            shuffle(&mut order, self.seed.unwrap_or(0), u64::MAX);
        }
        let tested = match (self.train, self.test) {
            (_, Some(test)) => reach(counts, order.iter().rev(), test),
            (Some(train), None) => order.len() - reach(counts, order.iter(), train),
            (None, None) => self.numbers(counts.len())[1],
        };
        let (trained, tested) = order.split_at(order.len() - tested);
        let starts: Vec<usize> =
            counts.iter().scan(0, |end, count| Some(std::mem::replace(end, *end + count))).collect();
        let windows_of = |series: &[usize]| {
            let mut series = series.to_vec();
            series.sort_unstable();
            series.into_iter().flat_map(|series| starts[series]..starts[series] + counts[series]).collect::<Vec<_>>()
        };
        let (mut train, mut test) = (windows_of(trained), windows_of(tested));
        shorten("--train", "windows of the other time series", &mut train, self.train)?;
        shorten("--test", "windows", &mut test, self.test)?;
        let note = format!(
            "{} of {} time series, split by whole series: {} to train, {} to test, so no window is in both",
            counted(samples, "window"),
            counts.len(),
            trained.len(),
            tested.len()
        );
        Ok((listed(train, test)?, Some(note)))
    }

    /// The split that the names of the files say.
    fn by_files(self, labels: &[(Label, usize)]) -> Result<Chosen, Error> {
        let has_test = labels.iter().any(|(label, _)| *label == Label::Test);
        let (mut train, mut test, mut first) = (Vec::new(), Vec::new(), 0);
        for &(label, count) in labels {
            match label {
                Label::Train => train.extend(first..first + count),
                Label::Validation if has_test => {}
                Label::Test | Label::Validation => test.extend(first..first + count),
            }
            first += count;
        }
        shorten("--train", "samples in files for training", &mut train, self.train)?;
        shorten("--test", "samples in files for testing", &mut test, self.test)?;
        let unused = first - train.len() - test.len();
        let unused = if unused > 0 { format!(", {unused} unused") } else { String::new() };
        let note = format!(
            "the names of the files say which samples are for training and which for testing: {} and {}{unused}",
            train.len(),
            test.len()
        );
        let ends = train.iter().copied().eq(0..train.len()) && test.iter().copied().eq(first - test.len()..first);
        let rule = match ends {
            true => Rule::Ends { train: train.len(), test: test.len() },
            false => listed(train, test)?,
        };
        Ok((rule, Some(note)))
    }
}

/// A list of samples, which a manifest must hold.
fn listed(train: Vec<usize>, test: Vec<usize>) -> Result<Rule, Error> {
    let found = train.len() + test.len();
    if found > MOST_LISTED {
        let expected = format!("at most {MOST_LISTED} samples that are listed one by one");
        let advice = "begin windows farther apart with --stride, or import with --ordered and --train";
        return Err(Error::unfit("split".into(), expected, found.to_string(), advice));
    }
    Ok(Rule::Indices { train, test })
}

/// How many series, taken one after another, have `wanted` windows together.
fn reach<'a>(counts: &[usize], series: impl Iterator<Item = &'a usize>, wanted: usize) -> usize {
    let mut windows = 0;
    let short = |series: &&usize| {
        let short = windows < wanted;
        windows += counts[**series];
        short
    };
    series.take_while(short).count()
}

/// Keeps the first `wanted` samples of a list; refuses more than it has.
fn shorten(what: &'static str, thing: &str, list: &mut Vec<usize>, wanted: Option<usize>) -> Result<(), Error> {
    let Some(wanted) = wanted else { return Ok(()) };
    if wanted > list.len() {
        let expected = format!("at most {}, the {thing}", list.len());
        return Err(Error::Number { what, expected, found: wanted.to_string() });
    }
    list.truncate(wanted);
    Ok(())
}

/// What the name of a file says about its samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Label {
    Train,
    Test,
    Validation,
}

/// The labels of the files, and how many samples each has; `None` unless every file has one and both sides occur.
fn labels(columns: &[Column]) -> Result<Option<Vec<(Label, usize)>>, Error> {
    let mut found: Option<(String, Vec<(Label, usize)>)> = None;
    for column in columns.iter().filter(|column| column.parts.len() > 1) {
        let label = |part: &super::column::Part| {
            let piece = part.pieces().first()?;
            Some((label(&piece.path)?, piece.samples()))
        };
        let Some(labels) = column.parts.iter().map(label).collect::<Option<Vec<_>>>() else { continue };
        let title = column.parts[0].pieces().first().map(super::column::Piece::title).unwrap_or_default();
        match &found {
            None => found = Some((title, labels)),
            Some((other, expected)) if spread(expected) != spread(&labels) => {
                let expected = format!("the training and test samples that {other} and its partners have");
                let advice = "give the files of every field in the same order, or draw the split with --seed 0";
                return Err(Error::unfit(title, expected, "other numbers of samples".into(), advice));
            }
            Some(_) => {}
        }
    }
    let labels = found.map(|(_, labels)| labels);
    Ok(labels.filter(|labels| {
        let has = |wanted| labels.iter().any(|(label, _)| *label == wanted);
        has(Label::Train) && (has(Label::Test) || has(Label::Validation))
    }))
}

/// Runs of the same label, and how many samples each has.
fn spread(labels: &[(Label, usize)]) -> Vec<(Label, usize)> {
    let mut runs: Vec<(Label, usize)> = Vec::new();
    for &(label, count) in labels {
        match runs.last_mut() {
            Some((last, total)) if *last == label => *total += count,
            _ => runs.push((label, count)),
        }
    }
    runs
}

/// The label in the name of a file, or of its folder.
fn label(path: &Path) -> Option<Label> {
    let said = |name: &str| {
        let name = name.to_lowercase();
        let mut words = name.split(|letter: char| !letter.is_alphabetic());
        words.find_map(|word| match word {
            "train" | "training" | "trn" => Some(Label::Train),
            "test" | "testing" | "tst" => Some(Label::Test),
            "val" | "valid" | "validation" => Some(Label::Validation),
            _ => None,
        })
    };
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    said(&name(path)).or_else(|| said(&name(path.parent()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_and_folders_say_what_they_are_for() {
        let said = |path: &str| label(Path::new(path));
        assert_eq!(said("a/burgers_train_16_x.npy"), Some(Label::Train));
        assert_eq!(said("a/Test-x.npy"), Some(Label::Test));
        assert_eq!(said("data/test/x.npy"), Some(Label::Test));
        assert_eq!(said("train/x_val.npy"), Some(Label::Validation));
        assert_eq!(said("a/latest_x.npy"), None);
        assert_eq!(said("a/strain.npy"), None);
    }

    #[test]
    fn windows_of_one_series_are_split_in_time() {
        let windows = Windows { window: 10, horizon: 10, step: 1 };
        let split = |sizes: Sizes| sizes.in_time(windows, 182);
        let rule = |sizes: Sizes| split(sizes).unwrap().0;
        assert_eq!(rule(Sizes::default()), Rule::Ranges { train: [0, 133], test: [152, 182] });
        let sizes = |train: Option<usize>, test: Option<usize>| Sizes { train, test, ..Sizes::default() };
        assert_eq!(rule(sizes(None, Some(10))), Rule::Ranges { train: [0, 153], test: [172, 182] });
        assert_eq!(rule(sizes(Some(100), None)), Rule::Ranges { train: [0, 100], test: [119, 182] });
        assert_eq!(rule(sizes(Some(5), Some(3))), Rule::Ranges { train: [0, 5], test: [179, 182] });
        assert_eq!(rule(sizes(Some(0), Some(182))), Rule::Ranges { train: [0, 0], test: [0, 182] });
        for (train, test) in [(None, Some(170)), (Some(170), None), (Some(161), Some(3)), (None, Some(183))] {
            let told = split(sizes(train, test)).unwrap_err().to_string();
            assert!(told.contains("to train on that end before") && told.contains("182 windows"), "{told}");
        }
    }

    #[test]
    fn whole_series_are_for_training_or_for_testing() {
        let counts = [3, 4, 5, 6, 7, 8, 9];
        for sizes in [
            Sizes::default(),
            Sizes { seed: Some(5), ..Sizes::default() },
            Sizes { test: Some(11), ..Sizes::default() },
        ] {
            let (Rule::Indices { train, test }, _) = sizes.by_series(&counts, 42).unwrap() else {
                panic!("not listed")
            };
            let series = |window: usize| {
                let mut end = 0;
                counts.iter().position(|count| {
                    end += count;
                    window < end
                })
            };
            assert!(!train.is_empty() && !test.is_empty());
            assert!(train.iter().all(|&window| test.iter().all(|&other| series(window) != series(other))));
        }
        let ordered = Sizes { ordered: true, ..Sizes::default() }.by_series(&counts, 42).unwrap().0;
        assert_eq!(ordered, Rule::Indices { train: (0..33).collect(), test: (33..42).collect() });
    }
}
