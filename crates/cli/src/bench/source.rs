//! The workload that a bench is given.

use dovetail_lab::bench::{BenchError, Source};
use dovetail_time::Ratio;
use dovetail_workload::Workload;
use dovetail_workload::personality::{Personality, PersonalityWorkload};

use crate::Failure;

/// A workload by what it was given as.
pub(super) enum AnySource {
    Personality(PersonalitySource),
}

impl AnySource {
    pub(super) fn load(job: &str, variables: &[(String, String)]) -> Result<Self, Failure> {
        let mut personality = Personality::load(job).map_err(Failure::failed)?;
        let given = variables.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        personality.set(given).map_err(Failure::failed)?;
        Ok(Self::Personality(PersonalitySource(personality)))
    }

    pub(super) fn as_source(&self) -> &dyn Source {
        match self {
            Self::Personality(source) => source,
        }
    }
}

pub(super) struct PersonalitySource(Personality);

impl Source for PersonalitySource {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn start(&self, _scale: Ratio, seed: u64) -> Result<Box<dyn Workload>, BenchError> {
        let workload = PersonalityWorkload::new(&self.0, seed);
        Ok(Box::new(workload.map_err(|error| BenchError::Workload(error.to_string()))?))
    }
}
