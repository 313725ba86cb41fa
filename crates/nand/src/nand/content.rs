//! Content of pages, and of tokens that stand for it.

use dovetail_block::{BlockBytes, Content, Inode, StreamId};

use super::{Address, Nand};
use crate::geometry::Ppn;
use crate::page::{Lpn, Oob};
use crate::payload::Token;

impl Nand {
    /// The content of subpage `subpage`, of 4 KiB, of a programmed page. Takes no time:
    /// [`Nand::read`] does.
    #[inline]
    pub fn token(&self, ppn: Ppn, subpage: usize) -> Token {
        self.store.token(ppn, subpage)
    }

    /// The logical page and stream of a programmed page. Takes no time: [`Nand::read`] does.
    #[inline]
    pub fn owner(&self, ppn: Ppn) -> (Lpn, StreamId) {
        self.store.owner(ppn)
    }

    /// The inode of a programmed page. Takes no time: [`Nand::read`] does.
    #[inline]
    pub fn inode(&self, ppn: Ppn) -> Inode {
        self.store.inode(ppn)
    }

    /// The out-of-band area of a page; `None` where the page is erased or torn. Takes no time.
    pub fn oob(&self, ppn: Ppn) -> Option<Oob> {
        let Address { block, page, .. } = self.address(ppn);
        let state = &self.store.blocks[block.0 as usize];
        if state.half_erased || page >= state.next_page {
            None
        } else {
            self.store.oob(ppn, block, page)
        }
    }

    /// The token of a content; the caller owns one reference.
    pub fn intern(&mut self, content: &Content) -> Token {
        self.store.payloads().intern(content)
    }

    /// As [`Nand::intern`] for bytes of which `before` is an earlier version, or anything else: the
    /// host keeps in its memory what differs between the two.
    pub fn intern_version(&mut self, bytes: &BlockBytes, before: Token) -> Token {
        self.store.payloads().intern_version(bytes, before)
    }

    /// Takes another reference to a token, to program it a second time.
    #[inline]
    pub fn retain(&mut self, token: Token) {
        self.store.payloads().retain(token);
    }

    /// Gives back a reference that was not programmed.
    #[inline]
    pub fn release(&mut self, token: Token) {
        self.store.payloads().release(token);
    }

    /// The content of a token; `None` where it is lost.
    pub fn content(&self, token: Token) -> Option<Content> {
        self.store.resolve(token)
    }
}
