//! What a training minimises, and how time enters. Each loss is a sum over the batch; for a roll-out it is taken of every
//! snapshot, for a by-time task of every time.

use crate::error::{Refusal, require};
use crate::task::TimeMode;
use lamo_geometry::Grid;
use serde::{Deserialize, Serialize};

/// Training losses; each is a sum over the batch. e is prediction − target, u the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// ‖e‖₂ / ‖u‖₂ of the whole field.
    RelativeL2,
    /// Relative L2 of the field plus a tenth of the relative L2 of both central differences (Darcy).
    RelativeL2WithGradient,
    /// Relative L2 of each teacher-forced snapshot of a roll-out (Navier–Stokes).
    RelativeL2OfFrames,
    /// Relative L2 of each time, with one optimiser step per time (Plasticity).
    RelativeL2OfTimes,
    /// Mean over the output channels of the relative L2 of each.
    RelativeL2PerChannel,
    /// Mean of (e/σ)² over points and outputs; σ is the deviation of the output over the training samples.
    Mse,
    /// Mean of |e/σ| over points and outputs.
    L1,
    /// √(‖e‖² + ‖∇e‖²) / √(‖u‖² + ‖∇u‖²), with differences of neighbours on a regular grid whose longest side is 1.
    H1,
}

impl Loss {
    /// Every loss.
    pub const ALL: [Loss; 8] = [
        Loss::RelativeL2,
        Loss::RelativeL2WithGradient,
        Loss::RelativeL2OfFrames,
        Loss::RelativeL2OfTimes,
        Loss::RelativeL2PerChannel,
        Loss::Mse,
        Loss::L1,
        Loss::H1,
    ];

    /// The name in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Loss::RelativeL2 => "relative-l2",
            Loss::RelativeL2WithGradient => "relative-l2-with-gradient",
            Loss::RelativeL2OfFrames => "relative-l2-of-frames",
            Loss::RelativeL2OfTimes => "relative-l2-of-times",
            Loss::RelativeL2PerChannel => "relative-l2-per-channel",
            Loss::Mse => "mse",
            Loss::L1 => "l1",
            Loss::H1 => "h1",
        }
    }

    /// What it computes, in one line.
    pub fn summary(self) -> &'static str {
        match self {
            Loss::RelativeL2 => "norm of the error over norm of the target, all outputs together",
            Loss::RelativeL2WithGradient => {
                "relative-l2 plus a tenth of the relative L2 of both central differences; one output on a plane"
            }
            Loss::RelativeL2OfFrames => "relative-l2 of every snapshot; continues a time series (data.time = roll-out)",
            Loss::RelativeL2OfTimes => {
                "relative-l2 of every time, an optimiser step for each; asks for each time (data.time = by-time)"
            }
            Loss::RelativeL2PerChannel => {
                "mean of the relative L2 of each output channel; none may be zero in a sample"
            }
            Loss::Mse => "mean square of the error, each output in units of its deviation over the training samples",
            Loss::L1 => "mean absolute error, each output in units of its deviation over the training samples",
            Loss::H1 => {
                "relative L2 of value and gradient together, on a regular line, plane or volume whose longest side is 1"
            }
        }
    }

    /// Whether it is computed of the error in units of each output's deviation.
    pub(crate) fn counts_deviations(self) -> bool {
        matches!(self, Loss::Mse | Loss::L1)
    }

    /// The role of time that the loss asks for, if it asks for one.
    fn time(self) -> Option<TimeRole> {
        match self {
            Loss::RelativeL2OfFrames => Some(TimeRole::RollOut),
            Loss::RelativeL2OfTimes => Some(TimeRole::ByTime),
            _ => None,
        }
    }

    /// Refuses a loss that cannot be computed on these points; `regular` is true on a regular line, plane or volume.
    pub(super) fn check(self, grid: Grid, outputs: usize, regular: bool) -> Result<(), Refusal> {
        let smooth = matches!(grid, Grid::Plane { rows, columns } if rows > 2 && columns > 2) && outputs == 1;
        require(self != Loss::RelativeL2WithGradient || smooth, || {
            let found = format!("{outputs} outputs on a grid of shape {:?}", grid.shape());
            Refusal::new("train.loss = relative-l2-with-gradient", "one output on a plane", found)
                .advise("use relative-l2")
        })?;
        require(self != Loss::H1 || regular, || {
            let expected = "equally spaced points on a line, a plane or a volume, the same in all samples";
            Refusal::new("train.loss = h1", expected, format!("points of a {grid} that are not"))
                .advise("use relative-l2")
        })
    }

    /// Refuses targets with a part `[points, outputs]` in which an output is zero everywhere, where the loss divides by the norm of
    /// each output.
    pub(super) fn check_targets<'a>(
        self,
        parts: impl Iterator<Item = &'a [f32]>,
        outputs: usize,
    ) -> Result<(), Refusal> {
        if self != Loss::RelativeL2PerChannel {
            return Ok(());
        }
        let is_zero =
            |part: &[f32], output: usize| part.iter().skip(output).step_by(outputs).all(|&value| value == 0.0);
        let mut zeros =
            parts.enumerate().flat_map(|(part, values)| (0..outputs).map(move |output| (part, values, output)));
        let zero = zeros.find(|&(_, values, output)| is_zero(values, output));
        zero.map_or(Ok(()), |(part, _, output)| {
            let expected = "outputs that are not zero everywhere, which have no relative error";
            let found = format!("output {} of training field {part}", output + 1);
            Err(Refusal::new("train.loss = relative-l2-per-channel", expected, found).advise("use mse or relative-l2"))
        })
    }
}

/// The role of time: the key `data.time`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeRole {
    /// What the loss asks for; steady where it asks for nothing.
    Auto,
    /// The snapshots of a field are functions of their own.
    Steady,
    /// A series is continued snapshot by snapshot.
    RollOut,
    /// Each time is asked for by itself.
    ByTime,
}

impl TimeRole {
    /// The name in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            TimeRole::Auto => "auto",
            TimeRole::Steady => "steady",
            TimeRole::RollOut => "roll-out",
            TimeRole::ByTime => "by-time",
        }
    }

    /// What it means, in one line.
    pub fn summary(self) -> &'static str {
        match self {
            TimeRole::Auto => "what the loss asks for; steady where it asks for nothing",
            TimeRole::Steady => "no role; all snapshots of a field are predicted at once, as functions of their own",
            TimeRole::RollOut => "a time series is continued snapshot by snapshot, trained on the true ones",
            TimeRole::ByTime => "each time is asked for by itself, as an input of the model",
        }
    }

    /// How time enters with this loss; a roll-out is given `past` snapshots.
    pub(super) fn mode(self, loss: Loss, past: usize) -> TimeMode {
        let role = if self == TimeRole::Auto { loss.time().unwrap_or(TimeRole::Steady) } else { self };
        match role {
            TimeRole::Auto | TimeRole::Steady => TimeMode::Steady,
            TimeRole::RollOut => TimeMode::RollOut { past },
            TimeRole::ByTime => TimeMode::ByTime,
        }
    }

    /// Refuses a role that contradicts the loss.
    pub(super) fn check(self, loss: Loss) -> Result<(), Refusal> {
        let asked = loss.time().unwrap_or(self);
        require(self == TimeRole::Auto || self == asked, || {
            let expected = format!("auto or {} with train.loss = {}", asked.name(), loss.name());
            Refusal::new("data.time", expected, self.name())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_loss_is_what_files_say() {
        for loss in Loss::ALL {
            let text = format!("loss = \"{}\"", loss.name());
            let table: std::collections::BTreeMap<String, Loss> = toml::from_str(&text).unwrap();
            assert_eq!(table["loss"], loss);
        }
    }

    #[test]
    fn time_follows_the_loss_unless_it_is_stated_and_never_contradicts_it() {
        let mode = |role: TimeRole, loss: Loss| role.check(loss).ok().map(|()| role.mode(loss, 3));
        let roll_out = TimeMode::RollOut { past: 3 };
        assert_eq!(mode(TimeRole::Auto, Loss::RelativeL2OfFrames), Some(roll_out));
        assert_eq!(mode(TimeRole::Auto, Loss::Mse), Some(TimeMode::Steady));
        assert_eq!(mode(TimeRole::RollOut, Loss::Mse), Some(roll_out));
        assert_eq!(mode(TimeRole::ByTime, Loss::L1), Some(TimeMode::ByTime));
        assert_eq!(mode(TimeRole::Steady, Loss::RelativeL2OfFrames), None);
        let refusal = TimeRole::RollOut.check(Loss::RelativeL2OfTimes).unwrap_err().to_string();
        assert_eq!(
            refusal,
            "data.time: expected auto or by-time with train.loss = relative-l2-of-times, found roll-out"
        );
    }

    #[test]
    fn an_output_of_zeros_has_no_relative_error() {
        let targets = [1.0, 2.0, 0.0, 4.0, 5.0, 0.0, 7.0, 0.0]; // two fields of two points, two outputs
        let refusal = Loss::RelativeL2PerChannel.check_targets(targets.chunks(4), 2).unwrap_err().to_string();
        assert!(refusal.contains("output 2 of training field 1"), "{refusal}");
        assert!(Loss::Mse.check_targets(targets.chunks(4), 2).is_ok());
        assert!(Loss::RelativeL2PerChannel.check_targets(targets[..4].chunks(4), 2).is_ok());
    }
}
