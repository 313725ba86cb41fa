#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used)]
use dovetail_lab::bench::{Job, Stack, run};
use dovetail_time::{Rng, SimTime};
use dovetail_workload::{Call, FileId, Outcome, Step, ThreadId, Workload};

struct W {
    blocks: u64,
    left: Vec<u64>,
    since: Vec<u64>,
    busy: Vec<bool>,
    prep: u64,
    rng: Rng,
    paths: Vec<String>,
}
impl Workload for W {
    fn threads(&self) -> u32 {
        4
    }
    fn job(&self, _: ThreadId) -> &str {
        "w"
    }
    fn path(&self, file: FileId) -> &str {
        &self.paths[file.0 as usize]
    }
    fn prepare(&mut self) -> Option<Call> {
        let per = self.blocks / 256;
        if self.prep == 4 * per {
            return None;
        }
        let (f, i) = (self.prep / per, self.prep % per);
        self.prep += 1;
        Some(Call::Write { file: FileId(f as u32), offset: i << 20, len: 1 << 20, direct: false })
    }
    fn next(&mut self, t: ThreadId, _now: SimTime) -> Step {
        let i = t.0 as usize;
        if self.busy[i] {
            return Step::Wait;
        }
        if self.since[i] == 10 {
            self.since[i] = 0;
            self.busy[i] = true;
            return Step::Call(Call::Sync { file: FileId(t.0), data_only: false });
        }
        if self.left[i] == 0 {
            return Step::Done;
        }
        self.left[i] -= 1;
        self.since[i] += 1;
        self.busy[i] = true;
        Step::Call(Call::Write {
            file: FileId(t.0),
            offset: self.rng.below(self.blocks) * 4096,
            len: 4096,
            direct: false,
        })
    }
    fn ended(&mut self, t: ThreadId, _c: &Call, _o: &Outcome) {
        self.busy[t.0 as usize] = false;
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let scale: f64 = args[2].parse().unwrap();
    let blocks = (1048576.0 * scale) as u64;
    let writes = (26214400.0 * scale) as u64 / 4;
    let mut w = W {
        blocks,
        left: vec![writes; 4],
        since: vec![0; 4],
        busy: vec![false; 4],
        prep: 0,
        rng: Rng::new(1),
        paths: (0..4).map(|i| format!("f{i}")).collect(),
    };
    let stack = Stack::load(&args[1]).unwrap();
    let start = std::time::Instant::now();
    let r = run(
        &Job {
            label: String::new(),
            stack: &stack,
            scale: format!("{scale}").parse().unwrap(),
            seed: 1,
            stop: &|| false,
            final_sync: false,
        },
        &mut w,
    )
    .unwrap();
    println!("{:?} {:?} {:?}\n{:?}", r.totals, r.written, r.fragmentation, start.elapsed());
}
