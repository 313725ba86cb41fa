//! Figure 15 of the IPLFS paper: where blocks are written over time.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

use dovetail_block::AREA_BLOCKS;
use dovetail_host::{Request, RequestKind};
use dovetail_lab::bench::BenchError;

use super::iplfs::{GIB, file_server, on_partition, watched};
use super::{Comparison, Figure, Reproduction, Setting, rounded};

pub(crate) const FIGURE: Figure = Figure {
    name: "iplfs-figure-15",
    title: "Addresses that are written over time by a file server: F2FS goes round its partition, IPLFS goes on",
    source: "Kim et al., IPLFS, ATC'22: figure 15 and section 6.2",
    setup: "Filebench's file server, 50 threads, files of 2 MiB, 15 GiB of them (assumed) on a partition of 30 GiB. Every command is counted: a block of a log is \
            written again if it was written before, the metadata's area of both left out, which has a place of its own. The results' scatter plot draws the areas of IPLFS over each \
            other.",
    reduced: 16,
    run,
    sensitivity: None,
};

const FILES: f64 = 15.0 * GIB;
const SECONDS: f64 = 600.0;
/// Share of F2FS's addresses before its main area, at most: 1 over this. For IPLFS it is the first
/// area.
const METADATA_SHARE: u64 = 20;

/// Traffic that reached the drive.
#[derive(Default)]
struct Traffic {
    /// First address of the logs.
    logs: u64,
    seen: HashSet<u64>,
    written: u64,
    again: u64,
    discards: u64,
}

impl Traffic {
    fn see(&mut self, request: &Request) {
        match request.kind {
            RequestKind::Write if request.range.start.0 >= self.logs => {
                for block in request.range.iter() {
                    self.written += 1;
                    self.again += u64::from(!self.seen.insert(block.0));
                }
            }
            RequestKind::Discard => self.discards += 1,
            _ => {}
        }
    }

    fn share_again(&self) -> f64 {
        self.again as f64 / (self.written as f64).max(1.0)
    }
}

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let source = file_server(setting, FILES, SECONDS)?;
    let mut results = setting.no_runs("fileserver");
    let mut seen = Vec::new();
    for stack in on_partition(&["f2fs", "iplfs"], "30GiB")? {
        let blocks = (30.0 * GIB * setting.scale.value()) as u64 / 4096;
        let logs = if stack.name == "iplfs" { AREA_BLOCKS } else { blocks / METADATA_SHARE };
        let traffic = Rc::new(RefCell::new(Traffic { logs, ..Traffic::default() }));
        let watcher = Rc::clone(&traffic);
        let watch = move |request: &Request| watcher.borrow_mut().see(request);
        results.runs.push(watched(setting, &stack, &source, watch)?);
        seen.push(traffic);
    }
    let [f2fs, iplfs] = [seen[0].borrow(), seen[1].borrow()];
    let percent = |traffic: &Traffic| {
        format!("{} % of {} blocks", rounded(traffic.share_again() * 100.0), traffic.written)
    };
    let comparisons = vec![
        Comparison {
            what: "addresses that IPLFS's logs write a second time".into(),
            paper: "it keeps appending, and never does".into(),
            ours: percent(&iplfs),
            rule: "none".into(),
            agrees: iplfs.again == 0 && iplfs.written > 0,
        },
        Comparison {
            what: "addresses that F2FS writes again".into(),
            paper: "it goes round".into(),
            ours: percent(&f2fs),
            rule: "some".into(),
            agrees: f2fs.again > 0,
        },
        Comparison {
            what: "discards of IPLFS and F2FS".into(),
            paper: "IPLFS's are a lot more frequent".into(),
            ours: format!("{} and {}", iplfs.discards, f2fs.discards),
            rule: "more".into(),
            agrees: iplfs.discards > f2fs.discards,
        },
    ];
    Ok(Reproduction { comparisons, results })
}
