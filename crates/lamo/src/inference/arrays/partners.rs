//! Files of several fields belong together: by the cases in their names, and by the samples that they hold.

use super::{Given, Part, SampleFile};
use crate::data::import;
use crate::error::{Refusal, counted};

/// Refuses several files of each of several fields that belong to different samples: by the cases in their names, or by the
/// number of their samples.
pub(super) fn check_files(leading: &Given, arrays: &[Given]) -> Result<(), Refusal> {
    check_partners(arrays.iter().map(|given| given.parts.iter().map(Part::title).collect()))?;
    let samples = |file: &SampleFile| file.samples.unwrap_or(1);
    let name = |file: &SampleFile| file.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for given in arrays.iter().filter(|given| given.parts.len() > 1 && given.parts.len() == leading.parts.len()) {
        let mut pairs = leading.files().into_iter().zip(given.files());
        if let Some((one, other)) = pairs.find(|(one, other)| samples(one) != samples(other)) {
            let expected = format!("{} as in {}", counted(samples(&one), "sample"), name(&one));
            return Err(Refusal::new(name(&other), expected, samples(&other).to_string())
                .advise("give files with the same samples for each field"));
        }
    }
    Ok(())
}

/// Refuses arrays of several fields that belong together by their order and not by their names.
pub(crate) fn check_partners(lists: impl Iterator<Item = Vec<String>>) -> Result<(), Refusal> {
    import::strangers(lists).map_or(Ok(()), |[file, other]| {
        Err(Refusal::new(file, format!("the partner of {other}"), "another case in its name")
            .advise("give the files of the same cases for each field"))
    })
}
