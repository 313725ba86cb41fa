//! From logical to physical pages: mapping schemes behind one small trait.
//!
//! A scheme is one file and one line in [`SCHEMES`]. It reports what each lookup and update cost. The drive counts
//! all of it, and charges the time of lookups and discards; an update hides behind the program that it follows.

mod hash;
pub mod interval;
mod page;

use dovetail_nand::{Lpn, Ppn};

/// What a lookup or update cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapCost {
    /// Dependent accesses to the drive's memory.
    pub accesses: u32,
}

/// A map from logical to physical pages.
pub trait Mapping: std::fmt::Debug + Send {
    /// Where `lpn` is, if it is mapped.
    fn lookup(&self, lpn: Lpn) -> (Option<Ppn>, MapCost);

    /// Maps `lpn` to `to`, or unmaps it; returns what it was mapped to before.
    fn update(&mut self, lpn: Lpn, to: Option<Ppn>) -> (Option<Ppn>, MapCost);

    /// Bytes of the drive's memory that the map takes now.
    fn memory_bytes(&self) -> u64;

    /// Tells that `lpn` will be looked up or updated soon. Changes nothing but the host's cache.
    fn expect(&self, lpn: Lpn) {
        let _ = lpn;
    }
}

/// One mapping scheme.
#[derive(Debug)]
pub struct Scheme {
    /// Its name in profiles and on the command line.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// Builds an empty map for logical pages `0..pages`.
    pub build: fn(pages: u32) -> Box<dyn Mapping>,
}

/// All mapping schemes.
pub static SCHEMES: [Scheme; 3] = [page::SCHEME, hash::SCHEME, interval::SCHEME];

/// The scheme of that name.
pub fn scheme(name: &str) -> Option<&'static Scheme> {
    SCHEMES.iter().find(|scheme| scheme.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dovetail_time::Rng;
    use std::collections::BTreeMap;

    #[test]
    fn every_scheme_agrees_with_a_sorted_map() {
        for scheme in &SCHEMES {
            let mut rng = Rng::new(11);
            let (mut map, mut model) = ((scheme.build)(500), BTreeMap::new());
            for step in 0..20_000 {
                let lpn = Lpn(rng.below(500) as u32);
                let to = rng.chance(0.6).then(|| Ppn(rng.below(1 << 30) as u32));
                let before = match to {
                    Some(ppn) => model.insert(lpn, ppn),
                    None => model.remove(&lpn),
                };
                assert_eq!(map.update(lpn, to).0, before, "{} step {step}", scheme.name);
                let probe = Lpn(rng.below(500) as u32);
                assert_eq!(map.lookup(probe).0, model.get(&probe).copied(), "{} step {step}", scheme.name);
            }
        }
    }
}
