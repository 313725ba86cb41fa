use super::*;

const NASTY: &str = "</script><b>\"'&";

fn point(values: &[(&str, String)], figures: &[(&str, f64)]) -> SweptPoint {
    let values = values.iter().map(|(axis, value)| ((*axis).to_string(), value.clone())).collect();
    let figures = figures.iter().map(|(path, value)| ((*path).to_string(), *value)).collect();
    let runs = vec![SweptRun { label: "f2fs".into(), figures }];
    SweptPoint { values, runs, error: None }
}

/// Write amplification falls with spare area; the policy matters less; a seed changes it by 0.02.
fn swept() -> Swept {
    let mut points = Vec::new();
    for op in [7, 28] {
        for gc in ["greedy", "fifo"] {
            for seed in 0..3 {
                let waf = 28.0 / f64::from(op) + if gc == "fifo" { 0.5 } else { 0.0 };
                let waf = waf + 0.02 * f64::from(seed);
                points.push(point(
                    &[("op", op.to_string()), ("gc", gc.into()), ("seed", seed.to_string())],
                    &[("totals.device_waf", waf), ("totals.erases", 5.0), ("x.size_ns", waf)],
                ));
            }
        }
    }
    let (planned, name) = (points.len() + 1, NASTY.into());
    Swept {
        name,
        command: "bench".into(),
        inputs: vec![NASTY.into()],
        planned,
        points,
        ..Swept::default()
    }
}

#[test]
fn seeds_are_repetitions_and_figures_that_never_change_are_dropped() {
    let swept = swept();
    let grid = Grid::of(&swept);
    assert_eq!(grid.axes.iter().map(|axis| axis.name.as_str()).collect::<Vec<_>>(), ["op", "gc"]);
    assert_eq!(grid.cells.iter().map(|cell| cell.runs.len()).collect::<Vec<_>>(), [3; 4]);
    let shown = Shown::of(&grid);
    let paths: Vec<&str> = shown.figures.iter().map(|figure| figure.path.as_str()).collect();
    assert_eq!((paths, shown.constant), (vec!["totals.device_waf", "x.size_ns"], 1));
    let waf = &shown.figures[0];
    assert!((waf.means[0].unwrap() - 4.02).abs() < 1e-9, "{waf:?}");
    // three values, 0.02 apart: their deviation is 0.02
    assert!((waf.errors[0].unwrap() - 0.02 / 3_f64.sqrt()).abs() < 1e-9, "{waf:?}");
    assert_eq!(shown.figures[1].unit, "ns");
}

#[test]
fn sentences_name_the_ends_and_the_axis_that_matters() {
    let swept = swept();
    let grid = Grid::of(&swept);
    let found = sentences::sentences(&grid, &Shown::of(&grid));
    // sqrt(4.02 / 1.02 * 4.52 / 1.52) and sqrt(1.52 / 1.02 * 4.52 / 4.02)
    assert_eq!(
        found[0],
        "Drive WAF is best with op 28, gc greedy (1.02) and worst with op 7, gc fifo (4.52), a factor of 4.43. \
         op matters most: it changes the figure by a factor of 3.42, gc by 1.29."
    );
    assert!(found[1].starts_with("Each combination has 3 seeds; the standard error"), "{found:?}");
    let mut idle = swept.clone();
    for point in &mut idle.points {
        point.values.push(("map".into(), if point.values[2].1 == "1" { "x" } else { "y" }.into()));
    }
    let grid = Grid::of(&idle);
    let found = sentences::sentences(&grid, &Shown::of(&grid));
    assert!(found[0].ends_with("gc by 1.29, map by less than 2 %."), "{found:?}");
    assert!(found[0].starts_with("Drive WAF is best with op 28, gc greedy (1.02)"), "{found:?}");
    let nothing = Swept::default();
    let grid = Grid::of(&nothing);
    assert_eq!(sentences::sentences(&grid, &Shown::of(&grid)), ["No point has come to its end."]);
}

#[test]
fn a_single_combination_shows_its_means_and_their_errors() {
    let mut swept = swept();
    swept.points.truncate(3); // three seeds of op 7, gc greedy: 4.00, 4.02 and 4.04
    let grid = Grid::of(&swept);
    let shown = Shown::of(&grid);
    assert_eq!((shown.figures.len(), shown.constant), (3, 0), "all of them");
    let found = sentences::sentences(&grid, &shown);
    assert_eq!(
        found,
        ["There is a single combination, with 3 seeds: drive WAF 4.02 \u{b1} 0.012."]
    );
    swept.points[0].runs[0].figures.insert("totals.read_mb_per_s".into(), 0.0);
    let page = html(&swept);
    assert!(!page.contains("read MB/s</th>"), "it has no reads: {page}");
    assert!(page.contains("drive WAF</th>") && page.contains("erases</th>"), "{page}");
    assert!(page.contains("<td>4.02 <span class=\"error\">\u{b1} 0.012</span></td>"), "{page}");
    assert!(!page.contains("never change"), "{page}");
    assert!(page.contains("<th scope=\"row\">op</th><td>7</td>"), "the combination: {page}");
    swept.points.truncate(1);
    let grid = Grid::of(&swept);
    let found = sentences::sentences(&grid, &Shown::of(&grid));
    assert_eq!(found, ["There is a single run: drive WAF 4.00."]);
}

#[test]
fn combinations_that_are_all_the_same_show_their_figures() {
    let mut swept = swept();
    for point in &mut swept.points {
        point.runs[0].figures.insert("totals.device_waf".into(), 1.5);
        point.runs[0].figures.remove("x.size_ns");
    }
    let page = html(&swept);
    assert!(page.contains("the same at all 4 combinations") && page.contains("<td>1.50</td>"));
}

#[test]
fn runs_of_a_point_are_an_axis() {
    let mut swept = swept();
    for point in &mut swept.points {
        let mut other = point.runs[0].clone();
        other.label = "ext4 #2".into();
        point.runs.push(other);
    }
    let grid = Grid::of(&swept);
    assert_eq!(grid.axes[2].name, "run");
    assert_eq!(grid.axes[2].values, ["f2fs", "ext4"]);
    assert_eq!(grid.cells.len(), 8);
}

#[test]
fn failed_points_are_named_and_names_are_text() {
    let mut swept = swept();
    swept.points[0].runs.clear();
    swept.points[0].error = Some(NASTY.into());
    let html = html(&swept);
    assert!(
        html.contains("<li>&lt;/script&gt;") && html.contains("1 point: op=7 gc=greedy seed=0<")
    );
    assert!(html.contains("1 point failed") && html.contains("1 point is not finished yet"));
    assert!(!html.contains("</script><b>") && !html.contains("{{"));
    assert!(html.contains("<td>2</td>"), "two seeds of three are left");
    let all = 2 * FAILED_NAMED;
    swept.points = (0..all).map(|_| swept.points[0].clone()).collect();
    swept.planned = all;
    let page = super::html(&swept);
    assert_eq!(page.matches("op=7 gc=greedy seed=0").count(), FAILED_NAMED);
    assert!(page.contains("and 100 more, in table.csv"));
}

#[test]
fn a_large_sweep_stays_small() {
    let numbers = |seed: u32| 1.0 + f64::from(seed.wrapping_mul(2_654_435_761) >> 8) / 1e3;
    let names: Vec<String> = (0..120).map(|figure| format!("figures.number_{figure}")).collect();
    let mut points = Vec::new();
    for number in 0..1000 {
        for seed in 0..2 {
            let value = |at: usize| numbers(number * 1000 + seed * 500 + at as u32);
            let figures: Vec<(&str, f64)> =
                names.iter().enumerate().map(|(at, name)| (name.as_str(), value(at))).collect();
            points.push(point(&[("op", number.to_string()), ("seed", seed.to_string())], &figures));
        }
    }
    let swept = Swept { planned: points.len(), points, ..Swept::default() };
    let html = html(&swept);
    assert!(html.len() < 2_000_000, "{} bytes", html.len());
    assert!(html.contains("20 figures that would make this page too long"));
}
