//! The tables of `docs/answers.md`, made of the rows of the figure `answers`: nothing in them is
//! typed. A table stands behind a comment that names it.

use serde_json::Value;

/// The drive and its fill unless a table says otherwise.
const USUAL: &str = "12.5 % spare, 80 % full";

/// The end of a table's name at full size.
const FULL: &str = ", full size";

/// A column: its title and its cell for a stack.
type Column = (&'static str, Box<dyn Fn(&Runs<'_>, &str) -> Option<String>>);

/// The figure's rows of single runs.
struct Runs<'a>(&'a [Value]);

impl<'a> Runs<'a> {
    /// The stacks in the figure's own order.
    fn stacks(&self) -> impl Iterator<Item = &'a str> {
        let first = format!("updates, {USUAL}: ");
        let stack = move |row: &'a Value| row["what"].as_str()?.strip_prefix(&*first);
        self.0
            .iter()
            .filter(|row| row["ours"].as_str().is_some_and(|ours| ours.contains(" erases")))
            .filter_map(stack)
    }

    /// The figures of a run: of a job on a drive with so much spare flash, filled so far.
    fn of(&self, job: &str, drive: &str, stack: &str) -> Option<Vec<&'a str>> {
        let what = format!("{job}, {drive}: {stack}");
        let row = self.0.iter().find(|row| row["what"] == what.as_str())?;
        Some(row["ours"].as_str()?.split(", ").collect())
    }

    /// The part of a run's figures between two texts.
    fn part(&self, job: &str, stack: &str, before: &str, after: &str) -> Option<String> {
        let parts = self.of(job, USUAL, stack)?;
        let found = parts.iter().find_map(|part| part.strip_prefix(before)?.strip_suffix(after));
        found.map(str::to_string)
    }

    fn rate(&self, job: &str, drive: &str, stack: &str) -> Option<&'a str> {
        self.of(job, drive, stack)?.first()?.strip_suffix(" MB/s")
    }

    /// Blocks written by the file system for one of the job, times pages programmed for one of
    /// those; and the product.
    fn written(&self, job: &str, drive: &str, stack: &str) -> Option<(&'a str, &'a str)> {
        let parts = self.of(job, drive, stack)?;
        parts.iter().find_map(|part| part.strip_prefix("written ")?.split_once(" = "))
    }
}

fn rate_and_factors(job: &'static str) -> Column {
    let cell = move |runs: &Runs<'_>, stack: &str| {
        let (factors, _) = runs.written(job, USUAL, stack)?;
        Some(format!("{}, {factors}", runs.rate(job, USUAL, stack)?))
    };
    (job, Box::new(cell))
}

fn rate_and_product(title: &'static str, drive: &'static str) -> Column {
    let cell = move |runs: &Runs<'_>, stack: &str| {
        let (_, product) = runs.written("updates", drive, stack)?;
        Some(format!("{}, {product}", runs.rate("updates", drive, stack)?))
    };
    (title, Box::new(cell))
}

/// The text between two others in the figures of a job's run.
fn part(
    title: &'static str,
    job: &'static str,
    before: &'static str,
    after: &'static str,
) -> Column {
    (title, Box::new(move |runs, stack| runs.part(job, stack, before, after)))
}

fn tables() -> [(&'static str, Vec<Column>); 3] {
    const READY: (&str, &str) = ("ready ", " ms after a cut");
    const FSYNC: (&str, &str) = ("fsync p99 ", " ms");
    [
        ("throughput", ["updates", "file server", "database", "mail"].map(rate_and_factors).into()),
        (
            "waiting",
            vec![
                part("fsync: updates", "updates", FSYNC.0, FSYNC.1),
                part("database", "database", FSYNC.0, FSYNC.1),
                part("mail", "mail", FSYNC.0, FSYNC.1),
                part("ready: updates", "updates", READY.0, READY.1),
                part("database", "database", READY.0, READY.1),
                part("mail", "mail", READY.0, READY.1),
                part("map", "updates", "map ", ""),
                part("erases, updates", "updates", "", " erases"),
            ],
        ),
        (
            "spare",
            vec![
                rate_and_product("7 % spare", "7 % spare, 80 % full"),
                rate_and_product("12.5 %", USUAL),
                rate_and_product("28 %", "28 % spare, 80 % full"),
                rate_and_product("65 % full", "12.5 % spare, 65 % full"),
                rate_and_product("50 % full", "12.5 % spare, 50 % full"),
            ],
        ),
    ]
}

fn table(columns: &[Column], runs: &Runs<'_>) -> Result<String, String> {
    let titles: Vec<&str> = columns.iter().map(|(title, _)| *title).collect();
    let mut out =
        format!("| stack | {} |\n{}|\n", titles.join(" | "), "|---".repeat(titles.len() + 1));
    for stack in runs.stacks() {
        let cell = |(title, cell): &Column| {
            cell(runs, stack).ok_or_else(|| format!("answers: no run of {stack} for \"{title}\""))
        };
        let cells: Vec<String> = columns.iter().map(cell).collect::<Result<_, _>>()?;
        out += &format!("| `{stack}` | {} |\n", cells.join(" | "));
    }
    Ok(out)
}

/// The page with the tables made anew of the rows at the default scale, and, where a mark ends in
/// [`FULL`], of those at full size; its text stays.
pub(crate) fn renewed(page: &str, rows: &[Value], full: &[Value]) -> Result<String, String> {
    let mut page = page.to_string();
    for (name, columns) in tables() {
        let begin = place(&page, name).ok_or_else(|| format!("docs/answers.md has no {name}"))?;
        replace_table(&mut page, begin, &table(&columns, &Runs(rows))?);
        if let Some(begin) = place(&page, &format!("{name}{FULL}")) {
            replace_table(&mut page, begin, &table(&columns, &Runs(full))?);
        }
    }
    Ok(page)
}

/// The place behind the mark of a table.
fn place(page: &str, name: &str) -> Option<usize> {
    let mark = format!("<!-- made: {name} -->\n");
    Some(page.find(&mark)? + mark.len())
}

/// Replaces what stands from `begin` up to an empty line.
fn replace_table(page: &mut String, begin: usize, table: &str) {
    let end = page[begin..].find("\n\n").map_or(page.len(), |end| begin + end + 1);
    page.replace_range(begin..end, table);
}
