//! The rules of flash, its faults and power cuts.

use std::sync::Arc;

use dovetail_block::{Content, Inode, Pattern, StreamId};
use dovetail_time::{SimSpan, SimTime};

use super::*;
use crate::page::{Lpn, Oob, Seq};
use crate::payload::Token;

fn flash() -> Nand {
    let geometry = Geometry {
        channels: 1,
        dies_per_channel: 2,
        planes_per_die: 1,
        blocks_per_plane: 2,
        pages_per_block: 4,
        page_bytes: 4096,
    };
    let timing = Timing {
        read: SimSpan::from_us(50),
        program: SimSpan::from_us(500),
        erase: SimSpan::from_ms(5),
        transfer_4k: SimSpan::from_us(10),
        ..Timing::default()
    };
    let factory_bad = vec![BlockId(3)];
    Nand::new(NandConfig { geometry, timing, retry: None, endurance: 3, factory_bad }).unwrap()
}

fn oob(lpn: u64, seq: u64) -> Oob {
    Oob { lpn: Lpn(lpn), seq: Seq(seq), inode: Inode(0), stream: StreamId(0) }
}

fn put(flash: &mut Nand, block: u32, page: u32, seq: u64) -> Result<SimTime, NandError> {
    let ppn = flash.geometry().ppn(BlockId(block), page);
    let token = flash.intern(&Content::Pattern(Pattern::new(seq)));
    flash.program(SimTime::ZERO, ppn, &[token], oob(7, seq))
}

#[test]
fn the_rules_of_flash_hold() {
    let mut flash = flash();
    assert_eq!(
        put(&mut flash, 0, 1, 1),
        Err(NandError::OutOfOrder { block: BlockId(0), page: 1, expected: 0 })
    );
    put(&mut flash, 0, 0, 1).unwrap();
    assert!(
        matches!(put(&mut flash, 0, 0, 2), Err(NandError::OutOfOrder { .. })),
        "programmed twice"
    );
    assert_eq!(put(&mut flash, 3, 0, 2), Err(NandError::BadBlock(BlockId(3))));
    assert_eq!(flash.read(SimTime::ZERO, Ppn(2), 4096), Err(NandError::Erased(Ppn(2))));
    assert!(matches!(flash.read(SimTime::ZERO, Ppn(99), 4096), Err(NandError::Argument(_))));
}

#[test]
fn out_of_band_areas_come_back_also_over_long_gaps_in_the_sequence() {
    let mut flash = flash();
    let seqs = [5, 6, 200_000, 200_001];
    for (page, seq) in seqs.into_iter().enumerate() {
        put(&mut flash, 1, page as u32, seq).unwrap();
    }
    for (page, seq) in seqs.into_iter().enumerate() {
        let ppn = flash.geometry().ppn(BlockId(1), page as u32);
        assert_eq!(flash.oob(ppn), Some(oob(7, seq)));
    }
}

#[test]
fn inode_and_stream_are_kept_where_they_are_told() {
    let mut flash = flash();
    put(&mut flash, 0, 0, 1).unwrap();
    let told = Oob { inode: Inode(44), stream: StreamId(15), ..oob(9, 2) };
    let ppn = flash.geometry().ppn(BlockId(0), 1);
    flash.program(SimTime::ZERO, ppn, &[Token::EMPTY], told).unwrap();
    assert_eq!(flash.oob(ppn), Some(told));
    assert_eq!(flash.inode(Ppn(0)), Inode(0));
}

#[test]
fn tokens_and_streams_of_any_kind_come_back_and_go_with_an_erase() {
    let geometry = Geometry { page_bytes: 16384, ..*flash().geometry() };
    let mut flash = Nand::new(NandConfig { geometry, ..flash().config().clone() }).unwrap();
    let numbers = [0, 1, 65_519, 65_520, 65_535, 65_536, 1 << 20, Pattern::MAX];
    let mut expected = Vec::new();
    for round in 0..3 {
        for page in 0..4u32 {
            let number = |subpage: u32| numbers[((page + subpage + round) % 8) as usize];
            let content = |subpage| match (page + subpage + round) % 3 {
                0 => Content::Bytes(Arc::new([page as u8; 4096])),
                _ => Content::Pattern(Pattern::new(number(subpage))),
            };
            let tokens = [0, 1, 2, 3].map(|subpage| flash.intern(&content(subpage)));
            let stream = StreamId((page * round) as u8 % 16);
            let oob = Oob { stream, ..oob(u64::from(page), u64::from(page + 4 * round)) };
            let ppn = flash.geometry().ppn(BlockId(round % 2), page);
            flash.program(SimTime::ZERO, ppn, &tokens, oob).unwrap();
            expected.push((ppn, oob, [0, 1, 2, 3].map(content)));
        }
        for (ppn, oob, contents) in &expected {
            assert_eq!(flash.oob(*ppn), Some(*oob));
            assert_eq!(flash.owner(*ppn), (oob.lpn, oob.stream));
            let found = [0, 1, 2, 3].map(|subpage| flash.content(flash.token(*ppn, subpage)));
            assert_eq!(found, contents.clone().map(Some), "{ppn:?}");
        }
        if round == 1 {
            flash.erase(SimTime::ZERO, BlockId(0)).unwrap();
            expected.drain(..4);
        }
    }
    for block in [0, 1] {
        flash.erase(SimTime::ZERO, BlockId(block)).unwrap();
    }
    assert_eq!(flash.store.payloads().live(), 0, "no bytes are left");
}

#[test]
fn a_block_wears_out() {
    let mut flash = flash();
    for _ in 0..3 {
        flash.erase(SimTime::ZERO, BlockId(0)).unwrap();
    }
    assert_eq!(flash.erase(SimTime::ZERO, BlockId(0)), Err(NandError::EraseFailed(BlockId(0))));
    assert_eq!(flash.erases(BlockId(0)), 3);
}

#[test]
fn a_power_cut_tears_what_is_in_flight() {
    for torn in [Torn::Untouched, Torn::Garbage, Torn::Finished] {
        let mut flash = flash();
        put(&mut flash, 0, 0, 1).unwrap();
        let cut = PowerCut { at_operation: 1, torn };
        flash.set_faults(FaultPlan { power_cut: Some(cut), ..FaultPlan::default() });
        assert_eq!(put(&mut flash, 0, 1, 2), Err(NandError::PowerLost));
        assert_eq!(flash.read(SimTime::ZERO, Ppn(0), 4096), Err(NandError::PowerLost));
        flash.power_on();
        assert!(flash.read(SimTime::ZERO, Ppn(0), 4096).is_ok());
        let second = flash.geometry().ppn(BlockId(0), 1);
        let left = (flash.programmed_pages(BlockId(0)), flash.oob(second).is_some());
        let expected = match torn {
            Torn::Untouched => (1, false),
            Torn::Garbage => (2, false),
            Torn::Finished => (2, true),
        };
        assert_eq!(left, expected);
    }
}

#[test]
fn a_torn_erase_leaves_a_block_that_must_be_erased_again() {
    let mut flash = flash();
    put(&mut flash, 0, 0, 1).unwrap();
    let cut = PowerCut { at_operation: 1, torn: Torn::Garbage };
    flash.set_faults(FaultPlan { power_cut: Some(cut), ..FaultPlan::default() });
    assert_eq!(flash.erase(SimTime::ZERO, BlockId(0)), Err(NandError::PowerLost));
    flash.power_on();
    assert_eq!(flash.read(SimTime::ZERO, Ppn(0), 4096), Err(NandError::Unreadable(Ppn(0))));
    assert_eq!(put(&mut flash, 0, 1, 2), Err(NandError::HalfErased(BlockId(0))));
    flash.erase(SimTime::ZERO, BlockId(0)).unwrap();
    put(&mut flash, 0, 0, 2).unwrap();
}

#[test]
fn a_cut_at_a_time_tears_what_is_under_way_and_takes_back_what_is_not() {
    let us = |n: u64| SimTime::from_ns(n * 1000);
    // Page 0 of block 0 from 10 to 510 us, page 1 to 1010, erase of block 1 from 0 to 5000.
    let left = |cut| {
        let mut flash = flash();
        put(&mut flash, 1, 0, 1).unwrap();
        flash.power_on();
        flash.remember_operations();
        put(&mut flash, 0, 0, 2).unwrap();
        put(&mut flash, 0, 1, 3).unwrap();
        flash.erase(SimTime::ZERO, BlockId(1)).unwrap();
        put(&mut flash, 1, 0, 4).unwrap();
        flash.cut_power_at(cut);
        flash.power_on();
        let readable = |block, page| {
            flash.oob(flash.geometry().ppn(BlockId(block), page)).map(|oob| oob.seq.0)
        };
        let pages = (flash.programmed_pages(BlockId(0)), readable(0, 0), readable(0, 1));
        (pages, flash.is_half_erased(BlockId(1)), readable(1, 0))
    };
    assert_eq!(left(us(400)), ((1, None, None), true, None));
    assert_eq!(left(us(600)), ((2, Some(2), None), true, None));
    assert_eq!(left(us(5200)), ((2, Some(2), Some(3)), false, None));
    assert_eq!(left(us(5600)), ((2, Some(2), Some(3)), false, Some(4)));
}

#[test]
fn faults_lie_over_data_that_is_whole() {
    let mut flash = flash();
    put(&mut flash, 0, 0, 1).unwrap();
    flash.set_faults(FaultPlan { unreadable: [Ppn(0)].into(), ..FaultPlan::default() });
    assert_eq!(flash.read(SimTime::ZERO, Ppn(0), 4096), Err(NandError::Unreadable(Ppn(0))));
    flash.set_faults(FaultPlan::default());
    assert!(flash.read(SimTime::ZERO, Ppn(0), 4096).is_ok());
    assert_eq!(flash.content(flash.token(Ppn(0), 0)), Some(Content::Pattern(Pattern::new(1))));
}

#[test]
fn bytes_are_freed_with_the_pages_that_hold_them() {
    let mut flash = flash();
    let content = Content::Bytes(Arc::new([3; 4096]));
    let token = flash.intern(&content);
    flash.program(SimTime::ZERO, Ppn(0), &[token], oob(1, 1)).unwrap();
    flash.retain(token);
    flash.program(SimTime::ZERO, Ppn(1), &[token], oob(1, 2)).unwrap();
    flash.erase(SimTime::ZERO, BlockId(0)).unwrap();
    assert_eq!(flash.content(flash.token(Ppn(1), 0)), Some(content));
    flash.erase(SimTime::ZERO, BlockId(1)).unwrap();
    assert_eq!(flash.store.payloads().live(), 0);
}
