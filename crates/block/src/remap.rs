//! Remapping: a block's content moves to another address without being written again.
//!
//! A remap is a list of pairs, executed as one: after a power cut all of its pairs happened or none
//! did. It comes in the order of the commands that completed before it, and it is durable when it
//! completes, together with the content that it moves: no flush is needed between the write of the
//! sources and the remap, nor after it. Commands that touch one block take effect in the order of
//! their issue, here as everywhere: a source may be written again at once.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use dovetail_time::SimSpan;

use crate::addr::{BlockRange, Lba};
use crate::device::{DeviceError, DeviceInfo};

/// One block that moves. Afterwards `to` holds what `from` held, and `from` is unmapped: it reads
/// as empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemapPair {
    /// The destination.
    pub to: Lba,
    /// The source.
    pub from: Lba,
}

/// The number of a batch of pairs that several commands bring, chosen by the issuer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchId(pub u32);

/// Time at which the pairs of a remap command are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemapWhen {
    /// With this command.
    Now,
    /// Not yet: they are held as part of a batch. A power cut forgets them, and so does the batch's
    /// last command if it fails.
    Held(BatchId),
    /// With this command, together with all that the batch holds: one atomic remap, longer than one
    /// command takes.
    WithHeld(BatchId),
}

/// Limits and times of a device's remap commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemapLimits {
    /// Pairs in one command, at least 1.
    pub pairs_per_command: u32,
    /// Pairs that all batches may hold together; 0 when the device holds none.
    pub held_pairs: u32,
    /// Time that a remap takes beside the handling of every command; each pair adds `pair_time`.
    /// These are for those who weigh a remap against a write.
    pub command_time: SimSpan,
    /// See `command_time`.
    pub pair_time: SimSpan,
}

impl RemapLimits {
    /// A device that takes so many pairs, in no time that it tells of.
    pub const fn of(pairs_per_command: u32, held_pairs: u32) -> Self {
        Self {
            pairs_per_command,
            held_pairs,
            command_time: SimSpan::ZERO,
            pair_time: SimSpan::ZERO,
        }
    }
}

impl DeviceInfo {
    /// Checks a remap command before it changes anything: `held` is what the device holds
    /// so far.
    ///
    /// # Errors
    /// The device cannot remap, the command is too long, an address lies beyond the end, or an
    /// address occurs twice in what would be executed together.
    pub fn check_remap(
        &self,
        pairs: &[RemapPair],
        when: RemapWhen,
        held: &HeldRemaps,
    ) -> Result<(), DeviceError> {
        let limits = self.capabilities.remap.ok_or(DeviceError::Unsupported("remap"))?;
        let (given, room) = (pairs.len() as u64, u64::from(limits.pairs_per_command));
        if given > room {
            return Err(DeviceError::RemapTooLong { pairs: given, limit: room });
        }
        if matches!(when, RemapWhen::Held(_)) {
            let (all, room) = (held.len() + given, u64::from(limits.held_pairs));
            if all > room {
                return Err(DeviceError::RemapTooLong { pairs: all, limit: room });
            }
        }
        let addresses = || held.of(when).iter().chain(pairs).flat_map(|pair| [pair.to, pair.from]);
        if are_distinct(addresses(), self.blocks) {
            return Ok(());
        }
        let mut seen = BTreeSet::new();
        for lba in addresses() {
            if lba.0 >= self.blocks {
                let range = BlockRange::new(lba, 1);
                return Err(DeviceError::OutOfRange { range, blocks: self.blocks });
            }
            if !seen.insert(lba) {
                return Err(DeviceError::RemapTwice(lba));
            }
        }
        Ok(())
    }
}

/// Addresses that are compared without an allocation: a command of 128 pairs.
const FEW: usize = 256;

/// All addresses are below `blocks`, and none is there twice.
fn are_distinct(mut addresses: impl Iterator<Item = Lba>, blocks: u64) -> bool {
    let (mut few, mut many) = ([0; FEW], Vec::new());
    let mut count = 0;
    for (place, lba) in few.iter_mut().zip(addresses.by_ref()) {
        (*place, count) = (lba.0, count + 1);
    }
    let all = match addresses.next() {
        None => &mut few[..count],
        Some(next) => {
            many.extend(few.into_iter().chain([next.0]).chain(addresses.map(|lba| lba.0)));
            &mut many[..]
        }
    };
    all.sort_unstable();
    all.last().is_none_or(|last| *last < blocks) && all.windows(2).all(|two| two[0] != two[1])
}

/// The pairs that a device holds back, by batch.
#[derive(Clone, Debug, Default)]
pub struct HeldRemaps {
    batches: BTreeMap<BatchId, Vec<RemapPair>>,
}

impl HeldRemaps {
    /// Number of pairs held in all.
    pub fn len(&self) -> u64 {
        self.batches.values().map(|pairs| pairs.len() as u64).sum()
    }

    /// Nothing is held.
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Pairs that the batch of a command holds so far.
    pub fn of(&self, when: RemapWhen) -> &[RemapPair] {
        match when {
            RemapWhen::Now => &[],
            RemapWhen::Held(batch) | RemapWhen::WithHeld(batch) => {
                self.batches.get(&batch).map_or(&[], Vec::as_slice)
            }
        }
    }

    /// [`DeviceInfo::check_remap`]; a last command that does not pass ends its batch.
    ///
    /// # Errors
    /// As there.
    pub fn admit(
        &mut self,
        info: &DeviceInfo,
        pairs: &[RemapPair],
        when: RemapWhen,
    ) -> Result<(), DeviceError> {
        let checked = info.check_remap(pairs, when, self);
        if let (Err(_), RemapWhen::WithHeld(batch)) = (&checked, when) {
            self.batches.remove(&batch);
        }
        checked
    }

    /// Takes in a checked command; returns the pairs that are executed with it, in the order in
    /// which they came.
    pub fn take(&mut self, pairs: &[RemapPair], when: RemapWhen) -> Vec<RemapPair> {
        self.executed_with(pairs, when).into_owned()
    }

    /// The same without a copy of the pairs where the batch holds none.
    pub fn executed_with<'a>(
        &mut self,
        pairs: &'a [RemapPair],
        when: RemapWhen,
    ) -> Cow<'a, [RemapPair]> {
        match when {
            RemapWhen::Now => Cow::Borrowed(pairs),
            RemapWhen::Held(batch) => {
                self.batches.entry(batch).or_default().extend_from_slice(pairs);
                Cow::Borrowed(&[])
            }
            RemapWhen::WithHeld(batch) => {
                let Some(mut all) = self.batches.remove(&batch) else {
                    return Cow::Borrowed(pairs);
                };
                all.extend_from_slice(pairs);
                Cow::Owned(all)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Capabilities;

    const LIMITS: RemapLimits = RemapLimits::of(2, 3);

    fn info(remap: Option<RemapLimits>) -> DeviceInfo {
        DeviceInfo { blocks: 10, capabilities: Capabilities { remap, ..Capabilities::default() } }
    }

    fn pair(to: u64, from: u64) -> RemapPair {
        RemapPair { to: Lba(to), from: Lba(from) }
    }

    #[test]
    fn what_cannot_be_executed_is_refused() {
        let held = HeldRemaps::default();
        let check = |pairs: &[RemapPair], when| info(Some(LIMITS)).check_remap(pairs, when, &held);
        assert_eq!(check(&[pair(1, 2), pair(3, 4)], RemapWhen::Now), Ok(()));
        assert_eq!(
            check(&[pair(1, 2), pair(3, 2)], RemapWhen::Now),
            Err(DeviceError::RemapTwice(Lba(2)))
        );
        assert_eq!(check(&[pair(1, 1)], RemapWhen::Now), Err(DeviceError::RemapTwice(Lba(1))));
        assert!(matches!(
            check(&[pair(1, 10)], RemapWhen::Now),
            Err(DeviceError::OutOfRange { .. })
        ));
        let long = check(&[pair(1, 2), pair(3, 4), pair(5, 6)], RemapWhen::Now);
        assert_eq!(long, Err(DeviceError::RemapTooLong { pairs: 3, limit: 2 }));
        let lacking = info(None).check_remap(&[pair(1, 2)], RemapWhen::Now, &held);
        assert_eq!(lacking, Err(DeviceError::Unsupported("remap")));
    }

    #[test]
    fn a_batch_is_executed_as_one() {
        let (mut held, batch) = (HeldRemaps::default(), BatchId(7));
        assert!(held.take(&[pair(1, 2), pair(3, 4)], RemapWhen::Held(batch)).is_empty());
        assert!(held.take(&[pair(5, 6)], RemapWhen::Held(BatchId(8))).is_empty());
        let twice =
            info(Some(LIMITS)).check_remap(&[pair(3, 9)], RemapWhen::WithHeld(batch), &held);
        assert_eq!(twice, Err(DeviceError::RemapTwice(Lba(3))), "an address that the batch holds");
        let full = info(Some(LIMITS)).check_remap(&[pair(7, 9)], RemapWhen::Held(batch), &held);
        assert_eq!(full, Err(DeviceError::RemapTooLong { pairs: 4, limit: 3 }));
        let all = held.take(&[pair(7, 8)], RemapWhen::WithHeld(batch));
        assert_eq!(all, [pair(1, 2), pair(3, 4), pair(7, 8)]);
        assert_eq!(held.len(), 1, "the other batch");
        let failed =
            held.admit(&info(Some(LIMITS)), &[pair(5, 9)], RemapWhen::WithHeld(BatchId(8)));
        assert_eq!(failed, Err(DeviceError::RemapTwice(Lba(5))));
        assert!(held.is_empty(), "a batch of which a command failed");
    }
}
