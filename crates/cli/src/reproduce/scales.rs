//! `dovetail reproduce --scales`: figures at several scales, and from which one on they stay.

use std::sync::atomic::Ordering;

use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};
use dovetail_lab::FinishedRuns;
use dovetail_papers::{AtScales, Figure, SCALES};
use dovetail_time::Ratio;
use serde_json::{Map, json};

use super::{Arguments, at_scale, finish, lines, stopped_at, with_setting};
use crate::signals::stop_flag;
use crate::{Failure, print};

pub(super) fn run(
    arguments: &Arguments,
    finished: Option<&FinishedRuns>,
    figures: &[&'static Figure],
) -> Result<(), Failure> {
    let mut scales = arguments.scales.clone();
    if !SCALES.contains(&scales.len()) {
        return Err(Failure::Usage(
            "--scales takes two to eight scales, such as 1/64,1/32,1/16".into(),
        ));
    }
    let stop = stop_flag()?;
    let mut all = Map::new();
    let mut failures = Vec::new();
    for figure in figures {
        let performed = with_setting(arguments, finished, Ratio::ONE, &stop, |setting| {
            figure.run_at(setting, &mut scales)
        });
        if stop.load(Ordering::Relaxed) {
            failures.push(stopped_at(figure.name, all.len()));
            break;
        }
        match performed {
            Ok(statements) => {
                print(&shown(figure, &scales, &statements))?;
                let values: Vec<f64> = scales.iter().map(|scale| scale.value()).collect();
                all.insert(
                    figure.name.into(),
                    json!({ "scales": values, "statements": statements }),
                );
            }
            Err(error) => failures.push(format!("{}: {error}", figure.name)),
        }
    }
    finish(arguments, &all, &failures)
}

fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.1} %", share * 100.0) } else { "all".into() }
}

/// The judgements at the two largest scales differ.
fn is_judged_otherwise(statement: &AtScales) -> bool {
    matches!(statement.verdicts[..], [.., before, last] if before != last)
}

/// The last column: from which scale on a result stays, or by how much it moves.
fn settled(statement: &AtScales) -> String {
    let limit = statement.tolerance.map(|most| format!(" of {}", percent(most)));
    let change = statement.change.map(|change| percent(change) + &limit.unwrap_or_default());
    let change = change.map(|change| format!(" ({change})")).unwrap_or_default();
    match statement.stays_from {
        Some(scale) => format!("stays from{}{change}", at_scale(scale).replacen(" at", "", 1)),
        None if statement.moves() && is_judged_otherwise(statement) => {
            format!("MOVES: judged otherwise{change}")
        }
        None if statement.moves() => format!("MOVES{change}"),
        None => format!("shown{change}"),
    }
}

/// A figure as text: each statement at each scale.
fn shown(figure: &Figure, scales: &[Ratio], statements: &[AtScales]) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    let title = |scale: &Ratio| match at_scale(scale.value()).strip_prefix(" at ") {
        Some(scale) => scale.to_string(),
        None => "full".into(),
    };
    let ends = ["agreement is".to_string(), String::new()];
    let header =
        ["".into(), "paper".into()].into_iter().chain(scales.iter().map(title)).chain(ends);
    table.set_header(header.collect::<Vec<String>>());
    for statement in statements {
        let ours = statement.ours.iter().map(|ours| ours.clone().unwrap_or_else(|| "-".into()));
        let row = [statement.what.clone(), statement.paper.clone()].into_iter().chain(ours);
        let ends = [statement.rule.clone(), settled(statement)];
        table.add_row(row.chain(ends).collect::<Vec<String>>());
    }
    let judged = statements.iter().filter(|statement| !statement.rule.is_empty()).count();
    let moving = statements.iter().filter(|statement| statement.moves()).count();
    format!(
        "{}: {}\n{}\n{moving} of {judged} statements move between the two largest scales\n\n",
        figure.name,
        figure.title,
        lines(&table)
    )
}

#[cfg(test)]
mod tests {
    use dovetail_papers::Verdict;

    use super::*;

    fn statement(rule: &str, stays_from: Option<f64>) -> AtScales {
        AtScales {
            what: "x".into(),
            paper: "2".into(),
            rule: rule.into(),
            ours: vec![None, Some("2.1".into()), Some("2.0".into())],
            verdicts: vec![None; 3],
            change: Some(0.05),
            tolerance: (!rule.is_empty()).then_some(0.1),
            stays_from,
        }
    }

    #[test]
    fn each_statement_says_from_where_it_stays_or_that_it_moves() {
        assert_eq!(
            settled(&statement("within 10 %", Some(1.0 / 32.0))),
            "stays from 1/32 (5.0 % of 10.0 %)"
        );
        assert_eq!(settled(&statement("within 10 %", None)), "MOVES (5.0 % of 10.0 %)");
        assert_eq!(settled(&statement("", None)), "shown (5.0 %)");
        let verdicts = vec![None, Some(Verdict::Agrees), Some(Verdict::Differs)];
        let judged = AtScales { verdicts, ..statement("within 10 %", None) };
        assert_eq!(settled(&judged), "MOVES: judged otherwise (5.0 % of 10.0 %)");
        let scales = ["1/64", "1/32", "1"].map(|scale| scale.parse().unwrap());
        let figure = Figure::find("rmipu-figure-3").unwrap();
        let text = shown(figure, &scales, &[statement("within 10 %", None), statement("", None)]);
        assert!(text.contains("1/32") && text.contains("full") && text.contains(" - "), "{text}");
        assert!(text.contains("1 of 1 statements move"), "{text}");
    }
}
