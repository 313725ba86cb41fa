//! A power cut at the end of a run, and the time until the volume is there again.

use dovetail_block::{BlockDevice, Command};
use dovetail_ftl::PowerCycle;
use dovetail_host::Event;
use dovetail_time::SimTime;
use tracing::info;

use super::system::System;
use super::{BenchError, Job, filesystems};
use crate::lane::{Lane, Machine};
use crate::results::RestartResult;

/// Cuts the power when the drive has carried out all that was issued, and mounts the volume on the
/// recovered drive.
pub(super) fn restart(job: &Job<'_>, system: System) -> Result<RestartResult, BenchError> {
    let stack = job.stack;
    let System { mut machine, mut planner, fs, .. } = system;
    come_to_rest(&mut machine)?;
    // the drive's write buffer is no subject here: the file system's state is
    planner.submit(machine.now(), Command::Flush).map_err(|error| failed(job, &error))?;
    play(&mut machine, &planner)?;
    drop(fs);
    planner.disconnect();
    planner.keep_dead();
    let drive = machine.into_device().ok_or_else(|| failed(job, &"its drive is in use"))?;
    let mut cycle = PowerCycle { duration: Default::default(), pages_read: 0 };
    let drive = drive.with_device(|drive| {
        let cycled = drive.power_cycle().ok_or_else(|| failed(job, &"its log has lost its map"))?;
        let (drive, work) = cycled.map_err(|error| failed(job, &error))?;
        cycle = work;
        if let Some(zoned) = drive.zoned() {
            planner.set_zones(zoned.zones().clone());
        }
        Ok::<_, BenchError>(drive)
    })?;
    info!("mounting again after a power cut");
    let start = SimTime::ZERO + cycle.duration;
    let mut machine = Machine::over(drive, stack.host, start, planner.events());
    if stack.devirtualize.is_some() {
        planner.connect(&machine);
    }
    let mut fs = filesystems::remount(stack, planner.clone(), job.scale)?;
    play(&mut machine, &planner)?;
    fs.statfs().map_err(|error| failed(job, &error))?;
    let traffic = machine.traffic();
    Ok(RestartResult {
        drive_s: cycle.duration.as_secs_f64(),
        drive_pages_read: cycle.pages_read,
        mount_s: machine.now().since(start).as_secs_f64(),
        mount_read_blocks: traffic.read.blocks,
        mount_written_blocks: traffic.write.blocks,
    })
}

fn failed(job: &Job<'_>, reason: &dyn std::fmt::Display) -> BenchError {
    BenchError::Setup {
        stack: job.stack.name.clone(),
        reason: format!("after a power cut: {reason}"),
    }
}

/// Plays all plans to their ends; no timer is answered.
fn come_to_rest(machine: &mut Machine) -> Result<(), BenchError> {
    while machine.advance()?.is_some() {}
    Ok(())
}

/// Plays what was issued last.
fn play(machine: &mut Machine, planner: &dovetail_host::Planner) -> Result<(), BenchError> {
    let plan = planner.take(machine.spare());
    machine.start(machine.now(), Lane::Alone, plan);
    while let Some(event) = machine.advance()? {
        if matches!(event, Event::Ended { lane: Lane::Alone, .. }) {
            break;
        }
    }
    Ok(())
}
