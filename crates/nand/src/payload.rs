//! Page content in 44 bits: a token names a pattern or points at bytes kept aside.

use std::sync::Arc;

use dovetail_block::{BlockBytes, Content, Pattern};

use crate::bytes::Bytes;

/// The content of 4 KiB of a page. Tokens of bytes are counted references: whoever interns one owns
/// one reference, programming it hands that reference to the page, and erasing the page gives it
/// back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token(u64);

const PATTERN_BIT: u64 = 1 << 43;
const FIRST_SLOT: u64 = 16;
/// The largest number of a pattern whose token fits into 16 bits.
const MOST_SHORT: u64 = u16::MAX as u64 - FIRST_SLOT;

impl Token {
    /// Nothing there.
    pub const EMPTY: Self = Self(0);
    /// The page was being programmed when the power was cut.
    pub(crate) const TORN: Self = Self(1);
    /// The data was lost on the medium before it could be moved; a page of it keeps that knowledge.
    pub const LOST: Self = Self(2);
    /// The 16 bits that no token has: it is kept in full elsewhere.
    pub(crate) const NOT_SHORT: u16 = 3;

    /// The token in 16 bits, where it fits: nothing, torn, lost, or a pattern with a small number.
    #[inline]
    pub(crate) const fn short(self) -> Option<u16> {
        let number = self.0 ^ PATTERN_BIT;
        if self.0 <= Self::LOST.0 {
            Some(self.0 as u16)
        } else if number <= MOST_SHORT {
            Some((number + FIRST_SLOT) as u16)
        } else {
            None
        }
    }

    /// The token of [`Token::short`]'s bits.
    #[inline]
    pub(crate) const fn from_short(bits: u16) -> Self {
        let bits = bits as u64;
        if bits < FIRST_SLOT { Self(bits) } else { Self(PATTERN_BIT | (bits - FIRST_SLOT)) }
    }

    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub(crate) const fn bits(self) -> u64 {
        self.0
    }

    #[inline]
    const fn slot(self) -> Option<usize> {
        if self.0 < PATTERN_BIT && self.0 >= FIRST_SLOT {
            Some((self.0 - FIRST_SLOT) as usize)
        } else {
            None
        }
    }

    /// Tells whether the token points at bytes kept aside.
    pub(crate) const fn has_bytes(self) -> bool {
        self.slot().is_some()
    }
}

/// The bytes behind tokens, with a count of references each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Payloads {
    slots: Vec<(Option<Bytes>, u32)>,
    free: Vec<usize>,
}

impl Payloads {
    #[inline]
    pub(crate) fn intern(&mut self, content: &Content) -> Token {
        match content {
            Content::Empty => Token::EMPTY,
            Content::Pattern(p) => Token(PATTERN_BIT | p.number()),
            Content::Bytes(bytes) => self.keep(Bytes::Whole(Arc::clone(bytes))),
        }
    }

    /// As [`Payloads::intern`] for bytes of which `before` has an earlier version, if it has any.
    pub(crate) fn intern_version(&mut self, bytes: &BlockBytes, before: Token) -> Token {
        let before = before.slot().and_then(|slot| self.slots[slot].0.as_ref());
        self.keep(match before {
            Some(before) => before.next_version(bytes),
            None => Bytes::first_version(bytes),
        })
    }

    fn keep(&mut self, bytes: Bytes) -> Token {
        let entry = (Some(bytes), 1);
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot] = entry;
                slot
            }
            None => {
                self.slots.push(entry);
                self.slots.len() - 1
            }
        };
        Token(FIRST_SLOT + slot as u64)
    }

    /// The content of a readable token; `None` where the data is lost or torn.
    pub(crate) fn resolve(&self, token: Token) -> Option<Content> {
        match token {
            Token::EMPTY => Some(Content::Empty),
            Token::TORN | Token::LOST => None,
            _ => match token.slot() {
                Some(slot) => {
                    self.slots[slot].0.as_ref().map(|bytes| Content::Bytes(bytes.to_whole()))
                }
                None => Some(Content::Pattern(Pattern::new(token.0))),
            },
        }
    }

    #[inline]
    pub(crate) fn retain(&mut self, token: Token) {
        if let Some(slot) = token.slot() {
            self.slots[slot].1 += 1;
        }
    }

    pub(crate) fn release(&mut self, token: Token) {
        let Some(slot) = token.slot() else { return };
        let (bytes, count) = &mut self.slots[slot];
        *count -= 1;
        if *count == 0 {
            *bytes = None;
            self.free.push(slot);
        }
    }

    /// Counts the references anew: those of `live` tokens are all that there are. After a power
    /// cut, what only the drive's memory referred to is gone.
    pub(crate) fn recount(&mut self, live: impl Iterator<Item = Token>) {
        for (_, count) in &mut self.slots {
            *count = 0;
        }
        for slot in live.filter_map(Token::slot) {
            self.slots[slot].1 += 1;
        }
        self.free.clear();
        for (slot, (bytes, count)) in self.slots.iter_mut().enumerate() {
            if *count == 0 {
                *bytes = None;
                self.free.push(slot);
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn live(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_outlives_the_one_that_it_was_told_to_follow() {
        let mut payloads = Payloads::default();
        let mut bytes = [7; 4096];
        let first = payloads.intern_version(&bytes, Token::EMPTY);
        bytes[4095] = 8;
        let second = payloads.intern_version(&bytes, first);
        payloads.release(first);
        assert_eq!(payloads.resolve(second), Some(Content::Bytes(Arc::new(bytes))));
        payloads.release(second);
        assert_eq!(payloads.live(), 0);
    }

    #[test]
    fn contents_come_back_and_bytes_are_freed() {
        let mut payloads = Payloads::default();
        let bytes = Content::Bytes(Arc::new([7; 4096]));
        for content in [Content::Empty, Content::Pattern(Pattern::new(Pattern::MAX)), bytes.clone()]
        {
            let token = payloads.intern(&content);
            assert_eq!(payloads.resolve(token), Some(content));
        }
        let token = payloads.intern(&bytes);
        payloads.retain(token);
        payloads.release(token);
        assert_eq!(payloads.live(), 2);
        payloads.release(token);
        assert_eq!(payloads.live(), 1);
        assert_eq!(payloads.resolve(Token::LOST), None);
        payloads.recount(std::iter::empty());
        assert_eq!(payloads.live(), 0);
    }
}
