//! Memory that a run of a workload takes.

use dovetail_block::BLOCK_SIZE;

use super::versions::Versions;
use super::{BenchError, Experiment, Stack};

/// Blocks that reach the drive for each block that a workload writes, at most (assumed: 5.6 were the
/// most measured). With an fsync for each and new blocks, ext4 writes bitmap, extents and inode to
/// its journal, between two blocks of the journal's own, and later to their places.
const BLOCKS_EACH: u64 = 8;

/// Blocks that a file system writes before the first call, at most (assumed): 1 in so many of its
/// partition, so many of them together.
const PARTITION_BLOCKS_EACH: u64 = 256;
const TOGETHER: u64 = 64;

/// Memory for a file system's own tables: a byte for so many of its partition (assumed: 0.2 to 1.3
/// GB were measured for 8 TiB).
const PARTITION_BYTES_A_BYTE: u64 = 4096;

/// Blocks that reach the drive of a workload that writes so many, at most, and stretches in which
/// they lie: each block of the workload's in one of its own, at worst.
const fn blocks_at_drive(written: u64, partition: u64) -> (u64, u64) {
    let (calls, mkfs) = (written.saturating_mul(BLOCKS_EACH), partition / PARTITION_BLOCKS_EACH);
    (calls.saturating_add(mkfs), calls.saturating_add(mkfs / TOGETHER))
}

impl Experiment<'_> {
    /// Bytes of memory that simulating the drive of a stack takes at most: all of the drive where it
    /// is preconditioned or nobody knows how much the workload writes.
    ///
    /// # Errors
    /// A drive or a workload that cannot be.
    pub fn memory_bytes(&self, stack: &Stack) -> Result<u64, BenchError> {
        let drive = stack.drive_config(self.scale, self.seed)?;
        if self.precondition || stack.is_linux() {
            return Ok(drive.memory_bytes());
        }
        let Some(written) = self.workload(stack, self.seed)?.written_blocks() else {
            return Ok(drive.memory_bytes());
        };
        let versions = Versions::most_bytes(written, drive.user_blocks);
        let of_drive = |(blocks, stretches)| {
            drive.memory_bytes_written(blocks, stretches).saturating_add(versions)
        };
        if stack.is_raw() {
            return Ok(of_drive((written, written)));
        }
        let tables = drive.user_blocks * BLOCK_SIZE / PARTITION_BYTES_A_BYTE;
        Ok(of_drive(blocks_at_drive(written, drive.user_blocks)).saturating_add(tables))
    }
}

#[cfg(test)]
mod tests {
    use dovetail_time::Ratio;

    use super::*;
    use crate::bench::Source;

    /// The jobs that cost a file system most: blocks at random places, each with an fsync; the last
    /// is cleaned for.
    #[test]
    fn no_file_system_writes_more_than_is_reckoned_with() {
        let jobs = [
            "[a]\nrw=randwrite\nbs=4k\nsize=8g\nio_size=1g\nfsync=1\nnorandommap\n",
            "[a]\nrw=randwrite\nbs=512\nsize=8g\nio_size=128m\nfsync=1\nnorandommap\n",
            "[a]\nrw=randwrite\nbs=4k\nsize=18g\nio_size=16g\nfsync=16\noverwrite=1\n",
        ];
        let stacks = ["f2fs", "f2fs-lfs", "ext4", "rm-ipu", "iplfs"].map(Stack::load);
        let stacks = stacks.map(Result::unwrap);
        for job in jobs {
            let source = Source::fio(job, "a.fio", &[]).unwrap();
            let scale = Ratio::new(1.0 / 64.0).unwrap();
            let experiment = Experiment { scale, ..Experiment::new(&source, &stacks) };
            let (results, failures) = experiment.run(2, &|_| {});
            assert!(failures.is_empty(), "{failures:?}");
            for (stack, run) in stacks.iter().zip(&results.runs) {
                let written = experiment.workload(stack, 1).unwrap().written_blocks().unwrap();
                let partition = stack.drive_config(scale, 1).unwrap().user_blocks;
                let (most, _) = blocks_at_drive(written, partition);
                let came = run.requests.by_kind.write.bytes / BLOCK_SIZE;
                assert!(came <= most && came >= written / 3, "{}: {came} of {most}", stack.name);
            }
        }
    }
}
