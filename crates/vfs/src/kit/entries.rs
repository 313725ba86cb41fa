//! Listings of a directory that is read entry by entry, some of them damaged.

use std::error::Error;
use std::fmt::Display;

use super::Corrupt;
use crate::LeftOut;

/// A reader's way to each entry of a directory, or to why one cannot be shown.
type Take<'a, E, X> = &'a mut dyn FnMut(Result<E, X>) -> Result<(), X>;

/// All entries that `each` gives.
///
/// # Errors
/// The first piece of the directory that is damaged; those of `each`.
pub fn all_entries<E, X>(each: impl FnOnce(Take<'_, E, X>) -> Result<(), X>) -> Result<Vec<E>, X> {
    let mut entries = Vec::new();
    each(&mut |entry| {
        entries.push(entry?);
        Ok(())
    })?;
    Ok(entries)
}

/// The entries that are whole, and in the words of `said` why others are not.
///
/// # Errors
/// Those of `each`.
pub fn whole_entries<E, X>(
    each: impl FnOnce(Take<'_, E, X>) -> Result<(), X>,
    said: fn(X) -> String,
) -> Result<(Vec<E>, LeftOut), X> {
    let (mut entries, mut left) = (Vec::new(), LeftOut::default());
    each(&mut |entry| {
        match entry {
            Ok(entry) => entries.push(entry),
            Err(error) => left.push(said(error)),
        }
        Ok(())
    })?;
    Ok((entries, left))
}

/// The first entry that is `wanted`.
///
/// # Errors
/// Those of `each`; if nothing is found, the first damage, which may have hidden it.
pub fn find_entry<E, X>(
    each: impl FnOnce(Take<'_, E, X>) -> Result<(), X>,
    wanted: impl Fn(&E) -> bool,
) -> Result<Option<E>, X> {
    let (mut found, mut damage) = (None, None);
    each(&mut |entry| {
        match entry {
            Ok(entry) if wanted(&entry) => found = found.take().or(Some(entry)),
            Ok(_) => {}
            Err(error) => damage = damage.take().or(Some(error)),
        }
        Ok(())
    })?;
    match (found, damage) {
        (None, Some(error)) => Err(error),
        (found, _) => Ok(found),
    }
}

/// The two entries "." and "..", as far as a directory has shown them.
#[derive(Debug, Default)]
pub struct Dots([bool; 2]);

impl Dots {
    /// Takes in the next entry of directory `dir`.
    ///
    /// # Errors
    /// [`Corrupt::FurtherDot`].
    pub fn check<P, I, F>(&mut self, dir: I, name: &[u8]) -> Result<(), Corrupt<P, I, F>>
    where
        P: Display,
        I: Display,
        F: Error + 'static,
    {
        let Some(which) = [&b"."[..], b".."].iter().position(|dots| *dots == name) else {
            return Ok(());
        };
        if std::mem::replace(&mut self.0[which], true) {
            return Err(Corrupt::FurtherDot { dir, name: crate::shown(name) });
        }
        Ok(())
    }
}
