//! The guest's memory, as the front end shares it.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use vm_memory::{FileOffset, GuestAddress, GuestMemoryMmap};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::VhostError;

/// A region as `SET_MEM_TABLE` tells it.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Region {
    guest: u64,
    size: u64,
    user: u64,
    offset: u64,
}

/// Regions of memory, each at a guest address and at an address of the front end's own.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) guest: GuestMemoryMmap,
    regions: Vec<Region>,
}

impl Memory {
    /// Maps the regions that the payload of a memory table names, a file each.
    pub(super) fn map(table: &[u8], files: Vec<OwnedFd>) -> Result<Self, VhostError> {
        const SHORT: VhostError = VhostError::Message("its memory table is too short");
        let (count, rest) = u64::read_from_prefix(table).map_err(|_| SHORT)?;
        let count = count as u32 as usize; // the upper half is padding
        if count != files.len() {
            return Err(VhostError::Message("its memory table has not one file a region"));
        }
        let (regions, _) =
            <[Region]>::ref_from_prefix_with_elems(rest, count).map_err(|_| SHORT)?;
        let end = |start: u64, size: u64| start.checked_add(size);
        if regions.iter().any(|r| end(r.guest, r.size).and(end(r.user, r.size)).is_none()) {
            return Err(VhostError::Message("its memory reaches beyond all addresses"));
        }
        for (region, file) in regions.iter().zip(&files) {
            // access beyond the end of a file ends the process; one that the front end makes shorter
            // later does so, too: it is trusted with it
            let len = rustix::fs::fstat(file).map_err(io::Error::from)?.st_size as u64;
            if end(region.offset, region.size).is_none_or(|end| end > len) {
                return Err(VhostError::Message("its memory is larger than the file of it"));
            }
        }
        let mapped = regions.iter().zip(files).map(|(region, file)| {
            let file = FileOffset::new(File::from(file), region.offset);
            (GuestAddress(region.guest), region.size as usize, Some(file))
        });
        let guest = GuestMemoryMmap::from_ranges_with_files(mapped)
            .map_err(|error| VhostError::Memory(error.to_string()))?;
        Ok(Self { guest, regions: regions.to_vec() })
    }

    /// The guest address of an address of the front end's.
    pub(super) fn guest_address(&self, user: u64) -> Result<GuestAddress, VhostError> {
        let of = |region: &&Region| (region.user..region.user + region.size).contains(&user);
        let region = self.regions.iter().find(of);
        let region = region.ok_or(VhostError::Message("a queue lies outside of the memory"))?;
        Ok(GuestAddress(region.guest + (user - region.user)))
    }
}
