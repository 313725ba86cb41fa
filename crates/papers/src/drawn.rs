//! Numbers of a statement, as far as they can be drawn: the paper's beside ours, or ours beside each
//! other.

use super::Comparison;
use super::numbers::number;

/// Values of one unit that a text begins with.
#[derive(Clone, Debug, Default, PartialEq)]
struct Numbers {
    /// Each with its name, where the text names them.
    values: Vec<(String, f64)>,
    /// Word behind them, such as `MB/s`; may be empty.
    unit: String,
    /// `A to B`: two ends.
    is_range: bool,
    /// The text ends behind them.
    is_whole: bool,
}

/// A statement's values, to be drawn from 0 on a scale of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// The paper's value, or both ends of what it gives; `None` where it gives none in our unit.
    pub paper: Option<(f64, f64)>,
    /// Our values, each with its name, which may be empty; the first one is compared with the paper's.
    pub ours: Vec<(String, f64)>,
    /// Unit of all of them; may be empty.
    pub unit: String,
}

/// Most values of a statement that are drawn.
const MOST: usize = 64;

impl Comparison {
    /// The values of the statement; `None` where there are not two to draw beside each other.
    pub fn drawn(&self) -> Option<Drawn> {
        let mut ours = numbers(&self.ours)?;
        let paper = numbers(&self.paper).filter(|paper| paper.unit == ours.unit);
        let paper = paper.and_then(|paper| match paper.values[..] {
            [(_, one)] => Some((one, one)),
            [(_, low), (_, high)] if paper.is_range && low <= high => Some((low, high)),
            _ => None,
        });
        // of a text that goes on, the values that stand first may not be what it is about
        let is_clear = !self.rule.is_empty() || ours.is_whole;
        let is_enough = paper.is_some() || ours.values.len() > 1;
        let is_drawable = ours.values.iter().all(|(_, value)| *value >= 0.0)
            && paper.is_none_or(|(low, _)| low >= 0.0);
        name_by(&self.what, &mut ours.values);
        let is_short = ours.values.len() <= MOST;
        let drawn = Drawn { paper, ours: ours.values, unit: ours.unit };
        (is_clear && is_enough && is_drawable && is_short).then_some(drawn)
    }
}

/// Gives values the names that the subject has for them in brackets: `RM-IPU (F2FS, ext4)` names those
/// behind the first one, or all if there are as many.
fn name_by(what: &str, values: &mut [(String, f64)]) {
    let listed = what.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
    let names: Vec<&str> = listed.map(|(names, _)| names.split(", ").collect()).unwrap_or_default();
    let first = match values.len().checked_sub(names.len()) {
        Some(first) if names.len() > 1 && first <= 1 => first,
        _ => return,
    };
    for ((name, _), given) in values[first..].iter_mut().zip(names) {
        *name = given.into();
    }
}

/// Words before a number that leave it what it is.
const BEFORE: [&str; 8] =
    ["up to ", "about ", "below ", "above ", "at most ", "at least ", "less than ", "more than "];
/// Words between two values of one unit; the longest first.
const BETWEEN: [&str; 6] = [" against ", " beside ", " to ", ", ", "  ", " "];

fn numbers(text: &str) -> Option<Numbers> {
    let text = BEFORE.iter().find_map(|before| text.strip_prefix(before)).unwrap_or(text).trim();
    listed(text).or_else(|| named(text))
}

/// `A`, `A to B`, `A against B, C`, with a unit behind the first or the last.
fn listed(text: &str) -> Option<Numbers> {
    let (first, mut rest) = number(text)?;
    let mut found = Numbers { values: vec![(String::new(), first)], ..Numbers::default() };
    loop {
        if let Some((between, value, after)) = next(rest) {
            found.is_range = between == " to " && found.values.len() == 1;
            let word = if between.starts_with(' ') { between.trim() } else { "" };
            found.values.push((word.into(), value));
            rest = after;
        } else if found.unit.is_empty() && !rest.is_empty() {
            let (unit, after) = unit(rest)?;
            found.unit = unit.into();
            rest = after;
            while let Some((value, after)) = same_unit(rest, unit) {
                found.values.push((String::new(), value));
                rest = after;
            }
            // "147 MB/s against 31.7, 20.1" goes on in the same unit, "17.3 KiB, 484" need not
            if unit.is_empty() || !rest.starts_with(" against ") && !rest.starts_with(" beside ") {
                break;
            }
        } else {
            break;
        }
    }
    found.is_whole = rest.is_empty();
    Some(found)
}

/// `name A unit, name B unit`: all of the text.
fn named(text: &str) -> Option<Numbers> {
    let part = |part: &str| {
        let at = part.rfind(|c: char| c == ' ' && !part.is_empty())?;
        let (name, last) = (&part[..at], &part[at + 1..]);
        match number(last) {
            Some((value, "")) => Some((name.to_owned(), value, String::new())),
            _ => {
                let (name, digits) = name.rsplit_once(' ')?;
                let (value, "") = number(digits)? else { return None };
                Some((name.to_owned(), value, last.to_owned()))
            }
        }
    };
    let parts: Vec<_> = text.split(", ").map(part).collect::<Option<_>>()?;
    let unit = parts.first()?.2.clone();
    let is_plain = |name: &str| {
        let has_letters = name.chars().any(char::is_alphabetic);
        let mut words = name.split(' ');
        has_letters && !name.ends_with(" to") && words.all(|word| word.parse::<f64>().is_err())
    };
    if parts.len() < 2 || !parts.iter().all(|(name, _, own)| is_plain(name) && *own == unit) {
        return None;
    }
    let values = parts.into_iter().map(|(name, value, _)| (name, value)).collect();
    Some(Numbers { values, unit, is_range: false, is_whole: true })
}

fn next(rest: &str) -> Option<(&'static str, f64, &str)> {
    BETWEEN.into_iter().find_map(|between| {
        let (value, after) = number(rest.strip_prefix(between)?)?;
        Some((between, value, after))
    })
}

/// `, B unit` behind a value of that unit.
fn same_unit<'a>(rest: &'a str, of: &str) -> Option<(f64, &'a str)> {
    let (value, after) = number(rest.strip_prefix(", ")?)?;
    let (found, after) = unit(after)?;
    (found == of && !of.is_empty()).then_some((value, after))
}

/// Words that are no unit.
const NO_UNITS: [&str; 7] = ["in", "of", "for", "and", "by", "at", "with"];

/// The word behind a number, which may be empty, and what follows it.
fn unit(rest: &str) -> Option<(&str, &str)> {
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    if rest.split(' ').next().is_some_and(|word| NO_UNITS.contains(&word)) {
        return Some(("", rest));
    }
    let end = rest.find([' ', ',', ';', '(', ':']).unwrap_or(rest.len());
    Some(rest.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::super::{direction, within};
    use super::*;

    fn drawn(paper: &str, ours: &str, rule: &str) -> Option<Drawn> {
        let statement = Comparison {
            what: "x".into(),
            paper: paper.into(),
            ours: ours.into(),
            rule: rule.into(),
            agrees: true,
        };
        statement.drawn()
    }

    fn values(drawn: &Drawn) -> Vec<f64> {
        drawn.ours.iter().map(|(_, value)| *value).collect()
    }

    #[test]
    fn a_number_of_the_paper_stands_beside_ours() {
        let pair = within("x", "MiB", 2.0, 2.25, 1.1).drawn().unwrap();
        assert_eq!((pair.paper, values(&pair)), (Some((2.0, 2.0)), vec![2.25]));
        assert_eq!(pair.unit, "MiB");
        let pair =
            drawn("up to 1.4 times", "1.30 times (155 MB/s over 138 as a whole)", "x").unwrap();
        assert_eq!((pair.paper, values(&pair)), (Some((1.4, 1.4)), vec![1.3]));
        let pair = drawn("2 to 5.5 s", "3 s", "x").unwrap();
        assert_eq!(pair.paper, Some((2.0, 5.5)));
        let pair = drawn("737 KiB beside 740", "1,000 KiB beside 988", "x").unwrap();
        assert_eq!((pair.paper, values(&pair)), (None, vec![1000.0, 988.0]));
    }

    #[test]
    fn values_of_another_unit_are_not_compared() {
        assert_eq!(drawn("47 % of ext4 against 60 %", "46.5 MB/s", "x"), None);
        let both = drawn("47 % of ext4 against 60 %", "46.5 MB/s against 50.6", "x").unwrap();
        assert_eq!((both.paper, values(&both)), (None, vec![46.5, 50.6]));
        assert_eq!(drawn("", "17.3 KiB, 484 thousand", ""), None, "two units, and no rule");
    }

    #[test]
    fn values_of_ours_stand_beside_each_other() {
        let list = drawn("more", "73.8 %, 85.1 %, 88.6 %", "direction").unwrap();
        assert_eq!((values(&list), list.unit.as_str()), (vec![73.8, 85.1, 88.6], "%"));
        let list = drawn("flat", "1.02 to 1.03 in 20 parts", "x").unwrap();
        assert_eq!((values(&list), list.unit.as_str()), (vec![1.02, 1.03], ""));
        let list = direction("x", "it falls", "149 57.2 36.1 MB/s".into(), true).drawn().unwrap();
        assert_eq!((list.paper, values(&list)), (None, vec![149.0, 57.2, 36.1]));
        let list = drawn("it is", "147 MB/s against 31.7, 20.1, 134", "direction").unwrap();
        assert_eq!(values(&list), [147.0, 31.7, 20.1, 134.0]);
        assert_eq!(list.ours[1], ("against".into(), 31.7));
        let named = Comparison {
            what: "rate (b, c, d)".into(),
            ..direction("", "", "4 against 3, 2, 1".into(), true)
        };
        let names: Vec<_> = named.drawn().unwrap().ours.into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["", "b", "c", "d"]);
        let list = drawn("", "dftl 3.49 us, s-ftl 2.48 us", "").unwrap();
        assert_eq!(list.ours, [("dftl".into(), 3.49), ("s-ftl".into(), 2.48)]);
    }

    #[test]
    fn what_is_no_number_is_not_drawn() {
        for ours in [
            "flat",
            "-3 % against 4",
            "4k blocks",
            "1.38 MB/s",
            "",
            "5a: 3",
            "a 1 to 2, b 3 to 4",
            "a 3 / 2, b 4 / 5",
        ] {
            assert_eq!(drawn("it falls", ours, "direction"), None, "{ours}");
        }
    }
}
