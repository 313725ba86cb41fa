//! Content of a volume before a workload starts.

use std::fmt;

use dovetail_block::BLOCK_SIZE;
use dovetail_time::{Ratio, parse_bytes};
use dovetail_workload::Workload;
use dovetail_workload::fileset::{Amount, FileSet, FileSetConfig, Prepared};

use super::{BenchError, Stack};

/// The size of large files at full scale.
const LARGE: f64 = (1_u64 << 30) as f64;

/// Amount of that content.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FillAmount {
    /// Bytes at full scale.
    Bytes(u64),
    /// A share of the partition, 0 to 1.
    Share(f64),
}

/// Kind of files in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillWith {
    /// Sizes and directories as found on people's machines (Impressions, FAST'09).
    Impressions,
    /// Files of 1 GiB at full scale.
    Large,
}

/// Content of a volume before a workload starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fill {
    /// Amount of data.
    pub amount: FillAmount,
    /// Kind of files.
    pub with: FillWith,
}

impl fmt::Display for Fill {
    /// As the options of the command line take it: `50% impressions`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.amount {
            FillAmount::Bytes(bytes) => write!(f, "{bytes}")?,
            FillAmount::Share(share) => write!(f, "{}%", (share * 1e8).round() / 1e6)?,
        }
        f.write_str(match self.with {
            FillWith::Impressions => " impressions",
            FillWith::Large => " large",
        })
    }
}

impl Fill {
    /// Reads an amount: `50%` of the partition, or bytes as `100GiB`.
    ///
    /// # Errors
    /// An amount that is neither 0% to 100% nor a number of bytes of at least one block.
    pub fn amount(text: &str) -> Result<FillAmount, String> {
        let Some(percent) = text.strip_suffix('%') else {
            let bytes = parse_bytes(text).map_err(|error| error.to_string())?;
            return match bytes {
                1..BLOCK_SIZE => Err(format!(
                    "{bytes} bytes are less than a block: write {text}% for a share of the partition, {text}GiB for bytes"
                )),
                _ => Ok(FillAmount::Bytes(bytes)),
            };
        };
        let share =
            percent.trim().parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent));
        share
            .map(|percent| FillAmount::Share(percent / 100.0))
            .ok_or_else(|| "give 0% to 100%, or bytes".into())
    }

    /// The workload, on a volume that holds this.
    pub(super) fn before(
        &self,
        workload: Box<dyn Workload>,
        stack: &Stack,
        scale: Ratio,
        seed: u64,
    ) -> Result<Box<dyn Workload>, BenchError> {
        if stack.is_raw() {
            return Err(BenchError::Workload(format!(
                "stack {}: a raw drive has no files to fill it with: give --precondition",
                stack.name
            )));
        }
        let bytes = match self.amount {
            FillAmount::Bytes(bytes) => (bytes as f64 * scale.value()) as u64,
            FillAmount::Share(share) => (stack.partition_bytes(scale, seed)? as f64 * share) as u64,
        };
        let set = match self.with {
            FillWith::Impressions => {
                FileSet::generate("fill", &FileSetConfig::new(Amount::Bytes(bytes)), seed)
            }
            FillWith::Large => FileSet::filling("fill", bytes, (LARGE * scale.value()) as u64),
        };
        let set = set.map_err(|error| BenchError::Workload(error.to_string()))?;
        Ok(Box::new(Prepared::new(set, workload)))
    }
}
