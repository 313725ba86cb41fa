//! Inodes without a name that are still to be freed or cut: those of the list, in which each leads
//! to the next by its time of deletion, and those of the orphan file.

use dovetail_block::BlockDevice;

use super::{Checker, Finding};
use crate::error::{Corrupt, Error, Place};
use crate::format::{
    BlockAddr, Compat, Ino, Inode, RoCompat, orphan_block_checksums, parse_orphan_block,
};

impl<D: BlockDevice> Checker<D> {
    pub(super) fn check_orphans(&mut self) -> Result<(), Error> {
        let mut next = self.volume.superblock.last_orphan;
        while next.is_some() {
            let Some(inode) = self.enter_orphan(next)? else { break };
            next = Ino(inode.dtime);
        }
        if self.volume.superblock.compat.has(Compat::ORPHAN_FILE) {
            self.check_orphan_file()?;
        }
        Ok(())
    }

    /// Notes an orphan; `None` for one that cannot be one, or that was noted before.
    fn enter_orphan(&mut self, ino: Ino) -> Result<Option<Inode>, Error> {
        if self.orphans.contains(&ino) {
            self.found(Finding::Orphan { ino, what: "is listed twice" });
            return Ok(None);
        }
        let superblock = &self.volume.superblock;
        let numbers = (superblock.first_ino.0.into(), superblock.inodes_count.into());
        let in_range =
            Corrupt::check_range(Place::Inode(ino), "the number of an orphan", ino.0, numbers);
        if self.decoded(in_range).is_none() {
            return Ok(None);
        }
        let inode = self.volume.inode(ino);
        let Some(inode) = self.sound(inode)? else { return Ok(None) };
        self.report.counts.orphans += 1;
        self.orphans.insert(ino);
        Ok(Some(inode))
    }

    /// Reads the file as far as it has blocks: a hole is damage.
    fn check_orphan_file(&mut self) -> Result<(), Error> {
        let superblock = &self.volume.superblock;
        let (place, size) =
            (Place::Inode(superblock.orphan_file_ino), u64::from(superblock.block_size()));
        let most = superblock.blocks_count;
        let file = self.volume.inode(superblock.orphan_file_ino);
        let Some(file) = self.sound(file)? else { return Ok(()) };
        let blocks = file.size / size;
        let in_range = Corrupt::check_range(place, "blocks of the orphan file", blocks, (1, most));
        if self.decoded(in_range).is_none() {
            return Ok(());
        }
        let mut next = 0;
        while next < blocks {
            let run = match self.volume.run(&file, next) {
                Ok(run) => run,
                // a damaged tree is told of with the inode
                Err(Error::Corrupt(_)) => return Ok(()),
                Err(error) => return Err(error),
            };
            let Some(start) = run.mapped.data() else {
                let hole = Corrupt::check_equal(place, "holes in the orphan file", 1_u32, 0_u32);
                self.decoded(hole);
                return Ok(());
            };
            let len = run.len.min(blocks - next);
            for at in (start.0..start.0 + len).map(BlockAddr) {
                self.check_orphan_block(&file, at)?;
            }
            next += len;
        }
        Ok(())
    }

    fn check_orphan_block(&mut self, file: &Inode, at: BlockAddr) -> Result<(), Error> {
        let block = self.volume.blocks.metadata(at)?;
        if let Some(seed) = file.checksum_seed(&self.volume.superblock) {
            let (found, computed) = orphan_block_checksums(&block, at, seed);
            let sound = Corrupt::check_checksum(Place::Inode(file.ino), found, computed);
            if self.decoded(sound).is_none() {
                return Ok(());
            }
        }
        let listed = self.decoded(parse_orphan_block(&block, file.ino)).unwrap_or_default();
        for ino in listed {
            if !self.volume.superblock.ro_compat.has(RoCompat::ORPHAN_PRESENT) {
                self.found(Finding::Orphan { ino, what: "the volume is marked as having none" });
            }
            self.enter_orphan(ino)?;
        }
        Ok(())
    }
}
