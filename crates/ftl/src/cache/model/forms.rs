//! The compact forms of a translation page, written out and read again: a cache counts no fewer
//! bytes than its content takes.

use super::super::runs::{Runs, distance, end_of_run};
use super::super::{lanes, s_ftl};
use super::*;

const CONFIG: CacheConfig = CacheConfig { bytes: 0, shift: 9 };
const PAGE: TranslationPage = TranslationPage(3);
const ADDRESS_BYTES: u64 = 4;

fn entries() -> std::ops::Range<Entry> {
    PAGE.0 << CONFIG.shift..(PAGE.0 + 1) << CONFIG.shift
}

/// A page that was written as a log, changed here and there, and of which something died; or one
/// that was written at random.
fn drawn(rng: &mut Rng) -> Places {
    let shape = nothing_mapped(CONFIG);
    let mut places: Vec<(Entry, u64)> = entries().map(|entry| (entry, entry + 7000)).collect();
    let (changes, holes) =
        if rng.chance(0.2) { (4000, 0) } else { (rng.below(200), rng.below(100)) };
    for _ in 0..changes {
        let at = rng.below(512) as usize;
        places[at].1 = rng.next_u64() >> 40;
    }
    places.retain(|_| rng.below(100) >= holes);
    shape.places.borrow_mut().extend(places);
    shape
}

/// Of an entry in the cache: its flash page, and whether flash lacks it.
type Known = Option<(Option<u64>, bool)>;

#[derive(Clone, Copy)]
enum Place {
    Nowhere,
    GoesOn,
    /// The next of the addresses.
    Named,
}

/// Three bits of an entry: not known, or one of six states.
type Mark = Option<(Place, bool)>;

fn marked(page: &[Known]) -> (Vec<Mark>, Vec<u64>) {
    let (mut addresses, mut last) = (Vec::new(), None);
    let mut marks = Vec::new();
    for (entry, known) in entries().zip(page) {
        marks.push(known.map(|(place, dirty)| {
            let Some(place) = place else { return (Place::Nowhere, dirty) };
            let distance = Some(place.wrapping_sub(entry));
            if std::mem::replace(&mut last, distance) == distance {
                return (Place::GoesOn, dirty);
            }
            addresses.push(place);
            (Place::Named, dirty)
        }));
    }
    (marks, addresses)
}

fn read_marked(marks: &[Mark], addresses: &[u64]) -> Vec<Known> {
    let (mut addresses, mut last) = (addresses.iter(), 0);
    let known = |(entry, mark): (Entry, &Mark)| {
        let (place, dirty) = (*mark)?;
        if let Place::Named = place {
            last = addresses.next().unwrap().wrapping_sub(entry);
        }
        let place = (!matches!(place, Place::Nowhere)).then(|| last.wrapping_add(entry));
        Some((place, dirty))
    };
    entries().zip(marks).map(known).collect()
}

/// A run's first entry, its length, its first flash page, and whether flash lacks it.
type Record = (Entry, u64, Option<u64>, bool);

fn records(runs: &Runs, shape: &Places) -> Vec<Record> {
    let mut slots: Vec<u32> = entries().filter_map(|entry| runs.find(entry)).collect();
    slots.dedup();
    let record = |slot: u32| {
        let run = runs.get(slot);
        (run.start, run.end - run.start, shape.place(run.start), run.dirty)
    };
    slots.into_iter().map(record).collect()
}

fn read_records(records: &[Record]) -> Vec<Known> {
    let known = |entry: Entry| {
        let holds = |record: &&Record| (record.0..record.0 + record.1).contains(&entry);
        let (start, _, place, dirty) = records.iter().find(holds)?;
        Some((place.map(|place| place + entry - start), *dirty))
    };
    entries().map(known).collect()
}

/// An entry each: it is known, flash lacks it, and its flash page, 0 for none.
fn plain(page: &[Known]) -> Vec<(bool, bool, u64)> {
    let written = |known: &Known| match known {
        Some((place, dirty)) => (true, *dirty, place.unwrap_or(0)),
        None => (false, false, 0),
    };
    page.iter().map(written).collect()
}

fn read_plain(plain: &[(bool, bool, u64)]) -> Vec<Known> {
    let known = |&(known, dirty, place): &(bool, bool, u64)| {
        known.then(|| (Some(place).filter(|place| *place != 0), dirty))
    };
    plain.iter().map(known).collect()
}

/// Caches some of the page's runs, and makes some of them dirty.
fn cached(shape: &Places, rng: &mut Rng) -> Runs {
    let mut runs = Runs::new(CONFIG, lanes::runs_bytes);
    let known = if rng.chance(0.3) { 100 } else { rng.below(101) };
    let (mut start, dirty) = (entries().start, rng.below(101));
    while start < entries().end {
        let end = end_of_run(shape, start, entries().end);
        if rng.below(100) < known {
            runs.add(start..end, distance(shape, start));
            if rng.below(100) < dirty {
                runs.moved(start);
                runs.join_changed(shape);
            }
        }
        start = end;
    }
    runs
}

#[test]
fn lanes_counts_the_least_of_forms_that_can_be_read_again() {
    let mut least = [0; 3];
    for seed in 0..500 {
        let mut rng = Rng::new(seed);
        let shape = drawn(&mut rng);
        let runs = cached(&shape, &mut rng);
        let known = |entry| runs.has(entry).then(|| (shape.place(entry), runs.is_dirty(entry)));
        let page: Vec<Known> = entries().map(known).collect();
        let (records, plain) = (records(&runs, &shape), plain(&page));
        let (marks, addresses) = marked(&page);
        assert_eq!(read_records(&records), page, "seed {seed}");
        assert_eq!(read_marked(&marks, &addresses), page, "seed {seed}");
        assert_eq!(read_plain(&plain), page, "seed {seed}");
        // 24 bits for a place, a length and a state; 3 bits for a mark; 2 for what is known
        let forms = [
            records.len() as u64 * (3 + ADDRESS_BYTES),
            marks.len() as u64 * 3 / 8 + addresses.len() as u64 * ADDRESS_BYTES,
            plain.len() as u64 * 2 / 8 + plain.len() as u64 * ADDRESS_BYTES,
        ];
        let smallest = *forms.iter().min().unwrap();
        assert_eq!(runs.bytes(), smallest, "seed {seed}: {forms:?}");
        least[forms.iter().position(|&form| form == smallest).unwrap()] += 1;
    }
    assert!(least.iter().all(|times| *times > 10), "{least:?}: one form was hardly met");
}

#[test]
fn s_ftl_counts_a_form_that_can_be_read_again() {
    for seed in 0..200 {
        let shape = drawn(&mut Rng::new(seed));
        let page: Vec<Option<u64>> = entries().map(|entry| shape.place(entry)).collect();
        let begins: Vec<bool> = (0..page.len())
            .map(|at| at == 0 || page[at] != page[at - 1].map(|place| place + 1))
            .collect();
        let mut addresses = page.iter().zip(&begins).filter(|(_, begins)| **begins);
        let counted = addresses.clone().count() as u64;
        let mut place = None;
        let read: Vec<Option<u64>> = begins
            .iter()
            .map(|&begins| {
                place = if begins {
                    *addresses.next().unwrap().0
                } else {
                    place.map(|place| place + 1)
                };
                place
            })
            .collect();
        assert_eq!(read, page, "seed {seed}");
        let condensed = (page.len() as u64 / 8 + counted * ADDRESS_BYTES)
            .min(page.len() as u64 * ADDRESS_BYTES);
        let found = s_ftl::by_runs(&CONFIG, &shape, PAGE).bytes;
        assert_eq!(found, ADDRESS_BYTES + condensed, "seed {seed}");
    }
}
