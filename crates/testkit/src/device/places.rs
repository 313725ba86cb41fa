//! A reference model of a device that devirtualises: blocks in memory, at random places, and moved
//! at will.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_block::{
    Answer, BlockDevice, BlockRange, Capabilities, Command, Completion, Content, Data, DeviceError,
    DeviceInfo, DeviceSpace, Devirtualize, DriveSerial, Inode, Lba, OpenRenames, Rename, RenameId,
    SectorRange,
};
use dovetail_time::{Rng, SimTime};

/// Renames that it takes (assumed).
const MOST: u32 = 256;

/// A block that is somewhere.
#[derive(Clone, Debug)]
struct Block {
    place: u64,
    content: Content,
    inode: Inode,
}

/// A device whose every write goes to another random place, and whose blocks move when it is told
/// so.
///
/// Commands complete at the time of their issue; nothing is volatile.
#[derive(Clone, Debug)]
pub struct PlacesDevice {
    blocks: u64,
    space: DeviceSpace,
    /// By the address that they are reached by.
    held: BTreeMap<Lba, Block>,
    free: Vec<u64>,
    open: Option<OpenRenames>,
    names: BTreeMap<Lba, Lba>,
    moved: BTreeSet<Inode>,
    rng: Rng,
}

impl PlacesDevice {
    /// An empty device of `blocks` blocks and as many places and `spare` more.
    pub fn new(blocks: u64, spare: u64, seed: u64) -> Self {
        let drive = DriveSerial::of(&[b"places", &seed.to_le_bytes()]);
        let space = DeviceSpace { first: Lba(blocks), blocks: blocks + spare, most: MOST, drive };
        Self {
            blocks,
            space,
            held: BTreeMap::new(),
            free: (0..space.blocks).collect(),
            open: None,
            names: BTreeMap::new(),
            moved: BTreeSet::new(),
            rng: Rng::new(seed),
        }
    }

    /// Moves `count` blocks drawn at random to other places.
    pub fn churn(&mut self, count: u64) {
        let held: Vec<Lba> = self.held.keys().copied().collect();
        for _ in 0..count.min(held.len() as u64 * count) {
            let lba = held[self.rng.below(held.len() as u64) as usize];
            let place = self.take_place();
            let Some(block) = self.held.get_mut(&lba) else { continue };
            let (place, old) = (place.unwrap_or(block.place), block.place);
            if lba >= self.space.first {
                self.moved.insert(block.inode);
            }
            if place != old {
                block.place = place;
                self.free.push(old);
            }
        }
    }

    /// Number of entries in its map: one for each block that is not at the place that its address
    /// names.
    pub fn entries(&self) -> u64 {
        self.held.iter().filter(|(lba, block)| self.name_of(block.place) != **lba).count() as u64
    }

    /// Blocks that it holds.
    pub fn blocks_held(&self) -> u64 {
        self.held.len() as u64
    }

    const fn name_of(&self, place: u64) -> Lba {
        Lba(self.space.first.0 + place)
    }

    fn take_place(&mut self) -> Option<u64> {
        if self.free.is_empty() {
            return None;
        }
        let index = self.rng.below(self.free.len() as u64) as usize;
        Some(self.free.swap_remove(index))
    }

    /// The address by which the drive has what the host calls so.
    fn name(&self, lba: Lba) -> Lba {
        *self.names.get(&lba).unwrap_or(&lba)
    }

    fn check(&self, range: BlockRange, data: u64) -> Result<(), DeviceError> {
        if range.start < self.space.first {
            return self.info().check(range, data);
        }
        if !self.space.contains(range) {
            return Err(DeviceError::OutOfRange { range, blocks: self.blocks });
        }
        let nothing = |lba: &Lba| !self.held.contains_key(&self.name(*lba));
        range.iter().find(nothing).map_or(Ok(()), |lba| Err(DeviceError::NoBlock(lba)))
    }

    fn read(&self, range: BlockRange, into: Option<&mut [Content]>) -> Result<(), DeviceError> {
        self.check(range, into.as_ref().map_or(range.blocks, |into| into.len() as u64))?;
        for (lba, into) in range.iter().zip(into.into_iter().flatten()) {
            let block = self.held.get(&self.name(lba));
            *into = block.map_or(Content::Empty, |block| block.content.clone());
        }
        Ok(())
    }

    fn write(
        &mut self,
        range: BlockRange,
        data: &Data<'_>,
        inode: Inode,
    ) -> Result<(), DeviceError> {
        self.check(range, data.blocks().unwrap_or(range.blocks))?;
        for (i, lba) in range.iter().enumerate() {
            let lba = self.name(lba);
            let place = self.take_place().ok_or(DeviceError::NoRoom)?;
            let block = Block { place, content: data.block(i as u64), inode };
            if let Some(old) = self.held.insert(lba, block) {
                self.free.push(old.place);
            }
        }
        Ok(())
    }

    fn discard(&mut self, ranges: &[SectorRange]) {
        for range in ranges.iter().map(|range| range.blocks_inside()) {
            let names = self.names.range(range.start..range.end()).map(|(_, &new)| new);
            let held = self.held.range(range.start..range.end()).map(|(&lba, _)| lba);
            for lba in names.chain(held).collect::<Vec<_>>() {
                self.free.extend(self.held.remove(&lba).map(|block| block.place));
            }
        }
    }

    fn devirtualize(&mut self, asked: Devirtualize<'_>) -> Result<Answer, DeviceError> {
        Ok(match asked {
            Devirtualize::Begin { id, renames } => Answer::Renames(self.begin(id, renames)?),
            Devirtualize::End { id, keep } => {
                self.end(id, keep);
                Answer::None
            }
            Devirtualize::Open => Answer::OpenBatch(self.open.clone()),
            Devirtualize::Moved => {
                Answer::Inodes(std::mem::take(&mut self.moved).into_iter().collect())
            }
            Devirtualize::Held { range } => Answer::Addresses(
                self.held.range(range.start..range.end()).map(|(&lba, _)| lba).collect(),
            ),
        })
    }

    fn begin(&mut self, id: RenameId, renames: &[Rename]) -> Result<Vec<Rename>, DeviceError> {
        if self.open.is_some() {
            return Err(DeviceError::RenamesOpen);
        }
        if renames.len() > MOST as usize {
            return Err(DeviceError::RenamesTooMany {
                renames: renames.len() as u64,
                limit: MOST.into(),
            });
        }
        let taken = |rename: &&Rename| rename.to.is_some_and(|to| self.held.contains_key(&to));
        if let Some(to) = renames.iter().find(taken).and_then(|rename| rename.to) {
            return Err(DeviceError::CannotRename(to));
        }
        let mut renames = renames.to_vec();
        for rename in renames.iter_mut().filter(|rename| rename.to.is_none()) {
            let name = self.held.get(&rename.from).map(|block| self.name_of(block.place));
            rename.to = name.filter(|name| *name != rename.from && !self.held.contains_key(name));
        }
        let executed: Vec<Rename> =
            renames.iter().filter(|rename| rename.to.is_some()).copied().collect();
        for &Rename { from, to } in &executed {
            if let (Some(to), Some(block)) = (to, self.held.remove(&from)) {
                self.held.insert(to, block);
                self.names.insert(from, to);
            }
        }
        if !executed.is_empty() {
            self.open = Some(OpenRenames { id, renames: executed });
        }
        Ok(renames)
    }

    fn end(&mut self, id: RenameId, keep: bool) {
        if self.open.as_ref().is_none_or(|open| open.id != id) {
            return;
        }
        self.open = None;
        for (old, new) in std::mem::take(&mut self.names) {
            if let Some(block) = self.held.remove(&new) {
                self.held.insert(if keep { new } else { old }, block);
            }
        }
    }
}

impl BlockDevice for PlacesDevice {
    fn info(&self) -> DeviceInfo {
        let capabilities = Capabilities {
            discard: true,
            streams: 1,
            inode_hints: true,
            devirtualize: Some(self.space),
            ..Capabilities::default()
        };
        DeviceInfo { blocks: self.blocks, capabilities }
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        match command {
            Command::Read { range, into } => self.read(range, into)?,
            Command::Write { range, data, hints, fua: _ } => {
                self.write(range, &data, hints.inode)?;
            }
            Command::Flush => {}
            Command::Discard { ranges } => self.discard(ranges),
            Command::Devirtualize(asked) => {
                return Ok(Completion::with(at, self.devirtualize(asked)?));
            }
            refused => return Err(refused.unsupported()),
        }
        Ok(Completion::at(at))
    }
}

dovetail_block::performs_at_once!(PlacesDevice);

#[cfg(test)]
mod tests {
    use super::*;
    use dovetail_block::{Hints, Pattern};

    fn ask(device: &mut PlacesDevice, asked: Devirtualize<'_>) -> Answer {
        device.submit(SimTime::ZERO, Command::Devirtualize(asked)).unwrap().answer
    }

    fn read(device: &mut PlacesDevice, lba: Lba) -> Result<Content, DeviceError> {
        let mut into = [Content::Empty];
        let range = BlockRange::new(lba, 1);
        device.submit(SimTime::ZERO, Command::Read { range, into: Some(&mut into) })?;
        let [content] = into;
        Ok(content)
    }

    fn written() -> PlacesDevice {
        let mut device = PlacesDevice::new(64, 16, 1);
        let range = BlockRange::new(Lba(0), 8);
        let (data, hints) =
            (Data::Patterns(Pattern::new(1)), Hints { inode: Inode(7), ..Hints::default() });
        device.submit(SimTime::ZERO, Command::Write { range, data, hints, fua: false }).unwrap();
        device
    }

    #[test]
    fn both_names_lead_to_the_block_until_the_batch_ends() {
        for keep in [true, false] {
            let mut device = written();
            let renames = [3, 5, 20].map(|lba| Rename { from: Lba(lba), to: None });
            let begin = Devirtualize::Begin { id: RenameId(1), renames: &renames };
            let renames = ask(&mut device, begin).into_renames();
            assert_eq!(renames[2].to, None, "there is nothing");
            let (old, new) = (renames[1].from, renames[1].to.unwrap());
            device.churn(40);
            let content = read(&mut device, old).unwrap();
            assert_eq!(read(&mut device, new), Ok(content.clone()));
            ask(&mut device, Devirtualize::End { id: RenameId(1), keep });
            let (stays, goes) = if keep { (new, old) } else { (old, new) };
            assert_eq!(read(&mut device, stays), Ok(content));
            let gone = if keep { Ok(Content::Empty) } else { Err(DeviceError::NoBlock(new)) };
            assert_eq!(read(&mut device, goes), gone);
        }
    }

    #[test]
    fn what_moves_gets_an_entry_and_its_inode_is_told() {
        let mut device = written();
        let renames: Vec<_> = (0..8).map(|lba| Rename { from: Lba(lba), to: None }).collect();
        ask(&mut device, Devirtualize::Begin { id: RenameId(1), renames: &renames });
        ask(&mut device, Devirtualize::End { id: RenameId(1), keep: true });
        assert_eq!(device.entries(), 0);
        device.churn(100);
        assert!(device.entries() > 4);
        assert_eq!(ask(&mut device, Devirtualize::Moved).into_inodes(), [Inode(7)]);
    }
}
