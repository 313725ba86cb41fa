//! Tables 1 and 2 of the IPLFS paper: what drives can take, what is written a day, how long the
//! addresses last.

use dovetail_lab::bench::BenchError;

use super::{Comparison, Figure, Reproduction, Setting, direction, rounded};

pub(crate) const FIGURE: Figure = Figure {
    name: "iplfs-tables-1-2",
    title: "How long the addresses of an endless partition last, at the rates of published traces",
    source: "Kim et al., IPLFS, ATC'22: tables 1 and 2, section 2.2",
    setup: "Arithmetic on the rates and endurances that the tables give: 2^64 sectors of 512 bytes by GiB a day, 365 days a year, cut to whole \
            million years. That is what fits the table's figures; with 10^9 bytes, 8 ZB or 365.25 days at least one of the three is another. The \
            partition is cut into seven areas, each of which ends on its own: the last statement asks the one that is written most.",
    reduced: 1,
    run,
    sensitivity: None,
};

/// 2^64 sectors of 512 bytes.
const ADDRESS_SPACE: f64 = 9_444_732_965_739_290_427_392.0;
/// An area of 2^58 blocks of 4 KiB.
const AREA: f64 = ADDRESS_SPACE / 8.0;
const GIB: f64 = 1_073_741_824.0;
const DAYS: f64 = 365.0;

/// Table 1: terabytes that drives can be written.
const TBW: [(&str, f64); 9] = [
    ("Adata XPG Gammix S50", 3600.0),
    ("Samsung 970 EVO Plus", 1200.0),
    ("Patriot Viper VPR100", 3115.0),
    ("Sabrent Rocket Q", 1800.0),
    ("Samsung S980 PRO", 600.0),
    ("Samsung 870 QVO", 2880.0),
    ("T-Force Cardea Zero Z340", 1665.0),
    ("WD Black SN850", 1200.0),
    ("SK hynix Gold P31", 750.0),
];

/// Table 2: GiB written a day, and million years.
const RATES: [(&str, f64, u64); 3] =
    [("YCSB on an SSD", 1159.0, 20), ("SYSTOR", 57.0, 422), ("Nexus 5", 13.0, 1853)];

fn years(bytes: f64, gib_a_day: f64) -> f64 {
    bytes / (gib_a_day * GIB) / DAYS
}

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let mut comparisons: Vec<Comparison> = RATES.iter().map(addresses_last).collect();
    let most = TBW.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or_default();
    let largest = most.1 * 1e12;
    comparisons.push(direction(
        "the largest endurance of table 1",
        "3.6 PB (Adata XPG Gammix S50)",
        format!("{} PB ({})", rounded(largest / 1e15), most.0),
        most == TBW[0],
    ));
    comparisons.push(direction(
        "drives of that endurance that one partition wears out",
        "the drive ends long before the addresses do",
        format!("{:.2} million", ADDRESS_SPACE / largest / 1e6),
        ADDRESS_SPACE > 1000.0 * largest,
    ));
    let (fastest, rate, _) = RATES[0];
    comparisons.push(direction(
        format!("years for which {fastest} could write to that drive"),
        "what is written is much less than what a drive can take",
        rounded(years(largest, rate)),
        years(largest, rate) > 5.0,
    ));
    comparisons.push(direction(
        format!(
            "million years until {fastest} fills one area of 2^58 blocks, all in one log; not in the paper"
        ),
        "an eighth of 20 at least",
        rounded(years(AREA, rate) / 1e6),
        years(AREA, rate) >= 20e6 / 8.0,
    ));
    Ok(Reproduction { comparisons, results: setting.no_runs(FIGURE.name) })
}

fn addresses_last(&(dataset, gib_a_day, paper): &(&str, f64, u64)) -> Comparison {
    let ours = (years(ADDRESS_SPACE, gib_a_day) / 1e6) as u64;
    Comparison {
        what: format!(
            "million years until {dataset} ({gib_a_day} GiB a day) has used all addresses"
        ),
        paper: paper.to_string(),
        ours: ours.to_string(),
        rule: "the same".into(),
        agrees: ours == paper,
    }
}
