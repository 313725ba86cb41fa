//! The counters of a drive that is served.

use comfy_table::Table;
use comfy_table::presets::NOTHING;
use dovetail_serve::{Address, DriveWork, ServerStatus, Status, ask_status};
use dovetail_time::{format_bytes, format_count};

use crate::{Failure, drive, print};

/// Asks the server at `address` and prints what it tells.
pub(super) fn run(address: &Address, json: bool) -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::Failed(format!("{address}: {error}"));
    let socket = address.connect().map_err(|error| failed(&error))?;
    let status = ask_status(&socket).map_err(|error| failed(&error))?;
    if json {
        let text = serde_json::to_string_pretty(&status).map_err(Failure::failed)?;
        return print(&format!("{text}\n"));
    }
    print(&text(&status))
}

fn text(status: &Status) -> String {
    let Status { drive: state, since_power_on: work, server } = status;
    let mut table = Table::new();
    table.load_style(NOTHING);
    let mut row = |what: &str, value: String| {
        table.add_row([format!("  {what}"), value]);
    };
    row("capacity", format_bytes(state.capacity_bytes));
    row("serial number", state.serial.clone());
    row("memory of the map", format_bytes(state.map_bytes));
    let lines = if state.zoned { "zones empty" } else { "lines free" };
    row(lines, format!("{} of {}", state.lines_free, state.lines));
    drive::wear(state, &mut row);
    row("erases of a block, mean", format!("{:.2}", state.erases_mean));
    work_of(work, &mut row);
    requests(server, &mut row);
    format!("{}\n{table}\n", state.name)
}

fn work_of(work: &DriveWork, row: &mut impl FnMut(&str, String)) {
    row("read by the host", commands(work.reads, work.read_bytes));
    row("written by the host", commands(work.writes, work.written_bytes));
    row("discarded by the host", commands(work.discards, work.discarded_bytes));
    row("flushes", format_count(work.flushes));
    row("written to flash", format_bytes(work.flash_written_bytes));
    let waf = work.write_amplification;
    row("write amplification", waf.map_or("nothing written yet".into(), |waf| format!("{waf:.2}")));
    row("pages read for the host", format_count(work.flash_pages_read));
    row("blocks erased", format_count(work.erases));
    row("lines cleaned", format_count(work.lines_cleaned));
    row("programs and erases failed", format_count(work.failures));
    row("lost on flash", format_bytes(work.lost_bytes));
}

fn requests(server: &ServerStatus, row: &mut impl FnMut(&str, String)) {
    row("served for", format!("{:.1} s", server.seconds));
    row("time of the drive", format!("{:.1} s", server.drive_seconds));
    row(
        "connections",
        format!("{}, {} in all", server.connections, format_count(server.connections_total)),
    );
    let requests = server.requests;
    for (kind, count) in [
        ("read", requests.read),
        ("write", requests.write),
        ("flush", requests.flush),
        ("discard", requests.discard),
        ("write zeroes", requests.write_zeroes),
        ("block status", requests.block_status),
        ("zones", requests.zone),
    ] {
        row(&format!("requests: {kind}"), format_count(count));
    }
    row("requests: failed", format_count(requests.failed));
}

fn commands(count: u64, bytes: u64) -> String {
    format!("{} in {} commands", format_bytes(bytes), format_count(count))
}
