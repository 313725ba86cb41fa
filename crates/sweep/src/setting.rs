//! Values of options and axes, as text of the command line.

use toml::Value;

/// Most values that an axis may have: a slip in a range would fill the memory (assumed).
const VALUES_MAX: usize = 1_000_000;

/// A scalar as the command line has it. `None` for tables, lists and dates.
pub(crate) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Boolean(flag) => Some(flag.to_string()),
        Value::Array(_) | Value::Table(_) | Value::Datetime(_) => None,
    }
}

/// Values of an axis: a list, or a range with both of its ends.
pub(crate) fn values(value: &Value) -> Result<Vec<String>, String> {
    let values = match value {
        Value::Array(list) => {
            list.iter().map(scalar).collect::<Option<Vec<_>>>().ok_or("give numbers or texts")?
        }
        Value::Table(range) => self::range(range)?,
        other => scalar(other).into_iter().collect(),
    };
    if values.is_empty() { Err("it has no values; give a list".into()) } else { Ok(values) }
}

fn range(table: &toml::Table) -> Result<Vec<String>, String> {
    const RANGE: &str = "a range is { from = 1, to = 10 }, maybe with step = 2 or times = 2";
    let number = |name: &str| match table.get(name) {
        Some(Value::Integer(number)) => Ok(Some(*number as f64)),
        Some(Value::Float(number)) if number.is_finite() => Ok(Some(*number)),
        Some(_) => Err(RANGE.to_owned()),
        None => Ok(None),
    };
    if let Some(unknown) =
        table.keys().find(|k| !["from", "to", "step", "times"].contains(&k.as_str()))
    {
        return Err(format!("it has \"{unknown}\"; {RANGE}"));
    }
    let (Some(from), Some(to)) = (number("from")?, number("to")?) else { return Err(RANGE.into()) };
    let next: Box<dyn Fn(usize) -> f64> = match (number("step")?, number("times")?) {
        (Some(_), Some(_)) => return Err(RANGE.into()),
        (None, Some(times)) if times > 1.0 && from > 0.0 => {
            Box::new(move |n| from * times.powi(n as i32))
        }
        (step, None) if step.unwrap_or(1.0) > 0.0 => {
            Box::new(move |n| from + n as f64 * step.unwrap_or(1.0))
        }
        _ => return Err("step must be above 0, times above 1".into()),
    };
    // a sum of steps may miss its end by what binary fractions cannot hold
    let end = to + to.abs() * 1e-9;
    let values: Vec<String> =
        (0..=VALUES_MAX).map(next).take_while(|value| *value <= end).map(rounded).collect();
    if values.len() > VALUES_MAX {
        return Err(format!("it has more than {VALUES_MAX} values"));
    }
    Ok(values)
}

/// Nine digits: 0.1 + 0.2 is 0.3.
fn rounded(number: f64) -> String {
    let digits = 1e9_f64;
    let near = if number.abs() < 1e6 { (number * digits).round() / digits } else { number };
    near.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<String>, String> {
        values(&text.parse::<toml::Table>().map_err(|e| e.to_string())?["a"])
    }

    #[test]
    fn axes_are_lists_and_ranges() {
        assert_eq!(read("a = [7, 12.5, 'greedy', true]").unwrap(), ["7", "12.5", "greedy", "true"]);
        assert_eq!(read("a = { from = 1, to = 3 }").unwrap(), ["1", "2", "3"]);
        assert_eq!(
            read("a = { from = 0.1, to = 0.3, step = 0.1 }").unwrap(),
            ["0.1", "0.2", "0.3"]
        );
        assert_eq!(
            read("a = { from = 64, to = 512, times = 2 }").unwrap(),
            ["64", "128", "256", "512"]
        );
        assert_eq!(read("a = 7").unwrap(), ["7"]);
    }

    #[test]
    fn what_is_no_axis_is_refused() {
        for text in [
            "a = []",
            "a = [[1]]",
            "a = { from = 1 }",
            "a = { from = 1, to = 2, step = 0 }",
            "a = { from = 1, to = 2, stpe = 1 }",
            "a = { from = 1, to = 2, step = 1, times = 2 }",
            "a = { from = 0, to = 2, times = 2 }",
            "a = { from = 0, to = 1e12 }",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
