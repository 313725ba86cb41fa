//! One workload on one stack, told while it goes on.

use std::cell::RefCell;
use std::rc::Rc;

use dovetail_block::BLOCK_SIZE;
use dovetail_host::{Request as Command, RequestKind};
use dovetail_lab::bench::{BenchError, Job, Source, Stack, View, Watcher, Watchers, run_watched};
use dovetail_lab::results::Results;
use dovetail_lab::{Prepared, Progress, Stage};
use dovetail_time::Ratio;
use serde::{Deserialize, Serialize};

use crate::Frame;
use crate::frame::{name_of, share};
use crate::heat::Heat;

/// A run that is asked for.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The name of a stack that comes with dovetail.
    pub stack: String,
    /// The profile of its drive; the stack's own if it is left out.
    pub drive: Option<String>,
    /// The name of the workload.
    pub workload: String,
    /// The workload: a fio job file.
    pub job: String,
    /// By how much everything is shrunk, as `1/64`.
    pub scale: String,
    /// Seeds everything.
    pub seed: u64,
    /// Fills and ages the drive first.
    pub precondition: bool,
}

/// Something that is told.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Message {
    /// The drive is being prepared.
    Stage {
        /// The stage's name, as [`Frame::stage`].
        stage: &'static str,
        /// The part that is done, 0 to 1; null if the end is not known.
        share: Option<f64>,
    },
    /// The run as it stands.
    Frame(Box<Frame>),
    /// It has ended.
    End {
        /// Results as `dovetail bench --json` writes them.
        results: Box<Results>,
    },
    /// It could not begin.
    Failed {
        /// The reason, a sentence.
        message: String,
    },
}

/// Hears how a run goes on.
pub trait Listener {
    /// It is time to tell where the run is; the answer changes nothing in it.
    fn is_due(&self) -> bool;
    /// Hears a message.
    fn tell(&self, message: &Message);
}

/// Performs the run, and tells how it goes on. Its results are those of `dovetail bench`.
pub fn play(request: &Request, listener: &dyn Listener) {
    let message = match perform(request, listener) {
        Ok(results) => Message::End { results: Box::new(results) },
        Err(error) => Message::Failed { message: error.to_string() },
    };
    listener.tell(&message);
}

fn perform(request: &Request, listener: &dyn Listener) -> Result<Results, BenchError> {
    let failed = |error: &dyn std::fmt::Display| BenchError::Workload(error.to_string());
    let scale: Ratio = request.scale.parse().map_err(|error| failed(&error))?;
    let source = Source::fio(&request.job, &request.workload, &[])?;
    let stack = stack(request)?;
    let mut workload = source.start_on(&stack, scale, request.seed)?;
    let progress = |progress: Progress| tell_preparation(listener, progress);
    let alone = Prepared::none();
    let aged = request.precondition.then(|| stack.new_drive(scale, request.seed)).transpose()?;
    let turn = aged.map(|drive| alone.turn(drive));
    let job = Job {
        label: stack.name.clone(),
        stack: &stack,
        scale,
        seed: request.seed,
        stop: &|| false,
        precondition: turn.as_ref(),
        final_sync: false,
        restart: false,
        progress: &progress,
    };
    let heat =
        Rc::new(RefCell::new(Heat::new(stack.partition_bytes(scale, job.seed)? / BLOCK_SIZE)));
    let written = Rc::clone(&heat);
    let show = |view: &View<'_>| {
        if view.is_last() || listener.is_due() {
            let writes = heat.borrow_mut().look();
            listener.tell(&Message::Frame(Box::new(Frame::of(view, writes))));
        }
    };
    let commands: Watcher = Rc::new(RefCell::new(move |request: &Command| {
        if request.kind == RequestKind::Write {
            written.borrow_mut().write(request.range);
        }
    }));
    let watchers = Watchers { commands: Some(commands), view: Some(&show) };
    let run = run_watched(&job, workload.as_mut(), watchers)?;
    Ok(Results::of(source.name().into(), scale.value(), request.seed, vec![run]))
}

fn stack(request: &Request) -> Result<Stack, BenchError> {
    let mut stack = Stack::load(&request.stack)?;
    if let Some(drive) = &request.drive {
        stack.drive.clone_from(drive);
    }
    if stack.is_linux() {
        return Err(BenchError::Setup {
            stack: stack.name,
            reason: "a real kernel runs on Linux alone; take a modelled stack".into(),
        });
    }
    Ok(stack)
}

/// Nothing but the drive is there yet.
fn tell_preparation(listener: &dyn Listener, progress: Progress) {
    if progress.stage == Stage::Precondition && listener.is_due() {
        let share = share(progress.done, progress.total);
        listener.tell(&Message::Stage { stage: name_of(progress.stage), share });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

    use std::cell::Cell;

    use dovetail_ftl::{Overrides, Profile};

    use super::*;
    use crate::CATALOGUE;
    use crate::catalogue::job_for;

    const JOB: &str =
        "[a]\nrw=randwrite\nbs=4k\nsize=8g\nio_size=1g\noverwrite=1\nnorandommap\nfsync=10\n";

    /// Remembers what it is told, and wants to be told every `every`th time.
    struct Heard {
        every: u64,
        asked: Cell<u64>,
        stages: RefCell<Vec<&'static str>>,
        frame: RefCell<serde_json::Value>,
        end: RefCell<Option<Result<Results, String>>>,
    }

    impl Listener for Heard {
        fn is_due(&self) -> bool {
            self.asked.set(self.asked.get() + 1);
            self.asked.get().is_multiple_of(self.every)
        }

        fn tell(&self, message: &Message) {
            match message {
                Message::Stage { stage, .. } => self.stages.borrow_mut().push(stage),
                Message::Frame(frame) => {
                    self.stages.borrow_mut().push(frame.stage);
                    *self.frame.borrow_mut() = serde_json::to_value(frame).unwrap();
                }
                Message::End { results } => {
                    *self.end.borrow_mut() = Some(Ok((**results).clone()));
                }
                Message::Failed { message } => {
                    *self.end.borrow_mut() = Some(Err(message.clone()));
                }
            }
        }
    }

    fn heard(request: &Request, every: u64) -> Heard {
        let heard = Heard {
            every,
            asked: Cell::default(),
            stages: RefCell::default(),
            frame: RefCell::default(),
            end: RefCell::default(),
        };
        play(request, &heard);
        heard
    }

    fn request(stack: &str, drive: Option<(&str, &str)>) -> Request {
        Request {
            stack: stack.into(),
            drive: drive.map(|(name, _)| name.into()),
            workload: "a.fio".into(),
            job: JOB.into(),
            scale: drive.map_or("1/64", |(_, scale)| scale).into(),
            seed: 1,
            precondition: false,
        }
    }

    #[test]
    fn who_watches_changes_nothing_and_sees_the_end() {
        let (often, never) =
            (heard(&request("f2fs", None), 1), heard(&request("f2fs", None), u64::MAX));
        let (often_end, never_end) = (often.end.take().unwrap(), never.end.take().unwrap());
        assert_eq!(often_end, never_end);
        assert!(often.stages.borrow().contains(&"prepare"), "{:?}", often.stages);
        assert_eq!(*never.stages.borrow(), ["run"], "the end alone");
        let frame = never.frame.take();
        let run = &serde_json::to_value(often_end.unwrap()).unwrap()["runs"][0];
        assert_eq!(frame["figures"]["totals"], run["totals"]);
        assert_eq!(frame["figures"]["written"], run["written"]);
        assert_eq!(frame["share"], serde_json::json!(1.0));
        assert!(!frame["volume"].as_array().unwrap().is_empty());
        let (columns, cells) = (&frame["drive"]["columns"], &frame["drive"]["cells"]);
        assert_eq!(cells.as_array().unwrap().len() as u64 % columns.as_u64().unwrap(), 0);
    }

    #[test]
    fn all_that_is_offered_can_be_had_and_no_more() {
        for (number, drive) in CATALOGUE.drives.iter().enumerate() {
            // all stacks on the first drive, two on the others
            let stacks = CATALOGUE.stacks.iter().map(|stack| stack.name);
            let stacks = stacks.filter(|stack| number == 0 || ["ext4", "rm-ipu"].contains(stack));
            for stack in stacks {
                let request = request(stack, Some((drive.choice.name, drive.scale)));
                let end = heard(&request, u64::MAX).end.take().unwrap();
                let ran = end.is_ok_and(|results| results.runs[0].error.is_none());
                assert_eq!(ran, !drive.lacks.contains(&stack), "{stack} on {}", request.scale);
            }
        }
    }

    #[test]
    fn every_workload_is_a_job_on_every_drive() {
        for drive in CATALOGUE.drives {
            let whole = Profile::load(drive.choice.name).unwrap();
            let bytes = whole.resolve(&Overrides::default()).unwrap().user_blocks * 4096;
            for workload in CATALOGUE.workloads {
                let job = job_for(workload.job, bytes);
                assert!(!job.contains('{'), "{job}");
                let source = Source::fio(&job, workload.choice.name, &[]).unwrap();
                source.start(drive.scale.parse().unwrap(), 1).unwrap();
            }
        }
    }

    #[test]
    fn a_real_kernel_and_a_wrong_job_are_refused_in_a_sentence() {
        let told = |request: &Request| heard(request, 1).end.take().unwrap().unwrap_err();
        assert!(told(&request("linux-f2fs", None)).contains("on Linux alone"));
        assert!(told(&request("f2sf", None)).contains("no stack \"f2sf\""));
        let wrong = Request { job: "[a]\nrw=sideways\n".into(), ..request("f2fs", None) };
        assert!(told(&wrong).contains("sideways"));
    }
}
