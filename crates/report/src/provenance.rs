//! The section that says how results came about: the command to run them again, the program, the job,
//! the stacks and the drives' timings. Collapsed, since few readers need it.

use std::collections::BTreeMap;

use dovetail_lab::results::{
    DriveTiming, JobSource, OptionsResult, Provenance, Results, RunResult,
};

use super::format::{duration_ns, escape};

/// The section of a report on `results`; empty where they say nothing of it.
pub(crate) fn section(results: &Results) -> String {
    let Some(provenance) = &results.provenance else { return String::new() };
    let parts = [
        command(provenance),
        results.options.as_ref().map(|options| facts(results, options)).unwrap_or_default(),
        results.job.as_ref().map(job).unwrap_or_default(),
        stacks(&results.runs),
        timings(&results.runs),
    ];
    collapsed(&parts.concat())
}

/// The section of a report that is made of several results.
pub(crate) fn of_call(provenance: &Provenance) -> String {
    collapsed(&command(provenance))
}

fn collapsed(html: &str) -> String {
    format!(
        "<section id=\"how\"><details>\n<summary>How this was run</summary>\n{html}</details></section>"
    )
}

fn command(provenance: &Provenance) -> String {
    let commit = match provenance.commit.as_str() {
        "" => String::new(),
        commit => format!(", commit <code>{}</code>", escape(commit)),
    };
    format!(
        "<p>The command that gives these results again, with dovetail {}{commit}, in a folder with the files that it names:</p>\n<pre id=\"command\">{}</pre>\n<p><button type=\"button\" id=\"copy\" hidden>Copy the command</button></p>\n",
        escape(&provenance.version),
        escape(&provenance.command)
    )
}

/// The options in one sentence, those alone that are not as by default.
fn facts(results: &Results, options: &OptionsResult) -> String {
    let is = |is: bool, text: &str| is.then(|| text.to_owned());
    let given = [
        Some(format!("seed {}", results.seed)),
        Some(format!("scale {}", results.scale)),
        (options.repeat > 1).then(|| format!("{} runs of each stack", options.repeat)),
        options.fill.as_ref().map(|fill| format!("volume filled with {fill}")),
        is(options.precondition, "drive preconditioned"),
        is(options.final_sync, "file system synced at the end"),
        is(options.restart, "power cut at the end"),
        is(options.wrap, "addresses folded into the drive"),
        is(options.skip_bad, "bad lines left out"),
        options.limit.map(|limit| format!("the first {limit} requests")),
        options.event.as_ref().map(|event| format!("event {event} of blkparse")),
        options.device.as_ref().map(|device| format!("device {device} alone")),
        options.interval_s.map(|seconds| format!("intervals of {seconds} s")),
    ];
    let given: Vec<String> = given.into_iter().flatten().collect();
    format!("<p>Options: {}.</p>\n", escape(&given.join("; ")))
}

fn job(job: &JobSource) -> String {
    let set: Vec<String> =
        job.definitions.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let set = match set.is_empty() {
        true => String::new(),
        false => format!("<p>With {}.</p>\n", escape(&set.join(", "))),
    };
    let text = job.text.as_deref().map(|text| {
        format!("<h3>The job as it was read</h3>\n<pre>{}</pre>\n", escape(text.trim_end()))
    });
    text.unwrap_or_default() + &set
}

/// Each stack's file, with the runs that have it.
fn stacks(runs: &[RunResult]) -> String {
    let there = runs.iter().filter(|run| !run.stack.file.is_empty());
    grouped(there.map(|run| (run.stack.file.trim_end().to_owned(), run)))
        .iter()
        .map(|(file, labels)| {
            format!("<h3>Stack of {}</h3>\n<pre>{}</pre>\n", escape(labels), escape(file))
        })
        .collect()
}

/// Each drive's timings, with the runs that have it.
fn timings(runs: &[RunResult]) -> String {
    grouped(runs.iter().map(|run| (timing(&run.drive.timing), run)))
        .iter()
        .map(|(timing, labels)| {
            format!(
                "<h3>The drive's timings, of {}</h3>\n<p>{}</p>\n",
                escape(labels),
                escape(timing)
            )
        })
        .collect()
}

fn timing(timing: &DriveTiming) -> String {
    let list = |times: &[u64]| {
        times.iter().map(|ns| duration_ns(*ns as f64)).collect::<Vec<_>>().join(" / ")
    };
    let page = |of_types: &[u64], mean: u64| match of_types {
        [] => duration_ns(mean as f64),
        types => list(types),
    };
    format!(
        "Page read {}, program {}, erase {}; 4 KiB over a channel {}, over the link {} (read) and {} \
         (write); a command {} (write {}), of which no other is taken for {} and {} more for 4 KiB of a write, \
         {} for each 4 KiB over the link and each page read or programmed, on {} core{}; a flush {} and a write with FUA {} beyond their programs; an access to the map {}.",
        page(&timing.cell_read_ns, timing.read_ns),
        page(&timing.cell_program_ns, timing.program_ns),
        list(&[timing.erase_ns]),
        list(&[timing.transfer_4k_ns]),
        list(&[timing.link_4k_ns]),
        list(&[timing.link_write_4k_ns]),
        list(&[timing.command_ns]),
        list(&[timing.write_command_ns]),
        list(&[timing.command_serial_ns]),
        list(&[timing.write_serial_4k_ns]),
        list(&[timing.request_serial_ns]),
        timing.cores,
        if timing.cores == 1 { "" } else { "s" },
        list(&[timing.flush_ns]),
        list(&[timing.fua_ns]),
        list(&[timing.map_access_ns]),
    )
}

/// The texts, each once, with the labels of the runs that have it.
fn grouped<'a>(all: impl Iterator<Item = (String, &'a RunResult)>) -> Vec<(String, String)> {
    let mut order: Vec<String> = Vec::new();
    let mut labels: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (text, run) in all {
        if !labels.contains_key(&text) {
            order.push(text.clone());
        }
        labels.entry(text).or_default().push(&run.label);
    }
    order.into_iter().map(|text| (text.clone(), labels[&text].join("; "))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NASTY: &str = "</pre><script>";

    #[test]
    fn all_that_a_run_needs_to_be_repeated_is_there() {
        let run = |label: &str, file: &str| {
            let mut run = RunResult { label: label.into(), ..RunResult::default() };
            run.stack.file = file.into();
            run.drive.timing.program_ns = 500_000;
            run
        };
        let runs = vec![run("a", NASTY), run("b", "name = \"b\""), run("c", NASTY)];
        let mut results = Results::of("job".into(), 0.25, 7, runs);
        assert_eq!(section(&results), "");
        results.provenance =
            Some(Provenance { version: "1.2".into(), commit: "abc".into(), command: NASTY.into() });
        let fill = Some("50% impressions".into());
        results.options =
            Some(OptionsResult { fill, final_sync: true, ..OptionsResult::default() });
        let definitions = [("SIZE".into(), "4g".into())].into();
        results.job = Some(JobSource { text: Some(NASTY.into()), definitions });
        let html = section(&results);
        for part in [
            "dovetail 1.2, commit <code>abc</code>",
            "seed 7; scale 0.25; volume filled with 50% impressions; file system synced at the end.",
            "With SIZE=4g.",
            "Stack of a; c",
            "name = &quot;b&quot;",
            "timings, of a; b; c",
            "program 500 µs",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(!html.contains("<script>"));
    }
}
