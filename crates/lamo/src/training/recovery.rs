//! Recovery from a divergence: returns to the last good checkpoint and finds the step and the kernel that failed.

use super::divergence::{Broken, Divergence, steadier};
use super::step::TOTAL;
use super::trainer::{PULSE, Trainer, Watch};
use crate::error::Error;
use crate::run::{Checkpoint, Run};
use lamo_tensor::{MODEL_STATES, PARAMETERS};
use std::time::Instant;

/// A mean loss beyond this is a divergence; predicting zero gives 1.
const LARGEST_LOSS: f64 = 1e6;

fn is_sane(loss: f64) -> bool {
    loss.is_finite() && loss < LARGEST_LOSS
}

impl Trainer {
    /// Runs [`Trainer::check`]. After a divergence the last good state is saved before the error returns.
    pub(super) fn check_or_undo(&mut self, run: Option<&Run>, parameters: bool, watch: Watch<'_>) -> Result<(), Error> {
        match self.check(parameters, watch) {
            Err(error) if error.downcast_ref::<Divergence>().is_some() => {
                self.undo(run)?;
                Err(error)
            }
            checked => checked, // a lost device cannot be restored; the checkpoint stays on disk
        }
    }

    /// Restores the last good state and saves it.
    pub(super) fn undo(&mut self, run: Option<&Run>) -> Result<(), Error> {
        let good = self.good.clone().expect("a run begins with a good state");
        self.restore(&good)?;
        self.save(run)
    }

    /// The error for a step that diverged. The trainer must already hold the last good state.
    pub(super) fn diverged(&self, broken: Broken, step: usize, loss: f64, culprit: Option<String>) -> Error {
        let epoch = (step - 1) / self.epoch_steps() + 1;
        let advice = steadier(&self.experiment().train, self.program.pace(step - 1).rate);
        Divergence { broken, step, epoch, loss, culprit, good: self.step, advice }.into()
    }

    /// Fails if the losses of the epoch are not finite, or with `parameters` if the parameters or the states of the model are not. The last good state
    /// is then restored.
    fn check(&mut self, parameters: bool, watch: Watch<'_>) -> Result<(), Error> {
        let loss = self.mean_loss()?;
        let program = &self.program.program;
        let finite = |name: &str| Ok::<_, Error>(program.try_read(name)?.iter().all(|value| value.is_finite()));
        let states = program.state_sections().is_empty() || !parameters || finite(MODEL_STATES)?;
        if is_sane(loss) && states && (!parameters || finite(PARAMETERS)?) {
            return Ok(());
        }
        let broken = self.step;
        let good = self.good.clone().expect("a run begins with a good state");
        let found = self.find(&good, broken, watch)?;
        let culprit = if found.is_some() { self.culprit()? } else { None };
        let (step, loss) = found.unwrap_or((broken, loss));
        self.restore(&good)?;
        Err(self.diverged(if is_sane(loss) { Broken::Parameter } else { Broken::Loss }, step, loss, culprit))
    }

    /// Repeats the steps after `good` up to the first one with a bad loss, at most up to `broken`. The snapshot then holds
    /// the state before that step. Returns the step and its loss, or `None` if the watcher asks to stop.
    fn find(&mut self, good: &Checkpoint, broken: usize, watch: Watch<'_>) -> Result<Option<(usize, f64)>, Error> {
        self.restore(good)?;
        let mut pulse = Instant::now();
        while self.step < broken {
            self.snapshot.capture(&self.program.program)?;
            self.advance()?;
            let loss = self.mean_loss()?;
            if !is_sane(loss) || self.step == broken {
                return Ok(Some((self.step, loss)));
            }
            if pulse.elapsed() >= PULSE {
                if watch(self.progress(None, false)?).is_break() {
                    break;
                }
                pulse = Instant::now();
            }
        }
        Ok(None)
    }

    /// Runs the last step again from the snapshot and returns its first kernel whose result is not finite.
    fn culprit(&mut self) -> Result<Option<String>, Error> {
        self.snapshot.restore(&mut self.program.program)?;
        self.program.program.try_write(TOTAL, &[0.0])?;
        self.step -= 1;
        self.program.prepare(self.step)?;
        Ok(self.program.program.run_checked()?.map(|culprit| culprit.summary()))
    }
}
