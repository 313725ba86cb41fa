//! The lines of a job file: sections, options, comments, as fio reads them.

use super::error::FioError;

/// A section with its options, in the order of the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Section<'a> {
    pub name: &'a str,
    pub line: u32,
    pub options: Vec<Line<'a>>,
}

/// `name=value`, or a name alone.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub number: u32,
    pub name: &'a str,
    pub value: Option<&'a str>,
}

impl Section<'_> {
    /// fio looks at the first letters only: `[global2]` is global too.
    pub(super) fn is_global(&self) -> bool {
        self.name.starts_with("global")
    }
}

pub(super) fn sections<'a>(text: &'a str, file: &str) -> Result<Vec<Section<'a>>, FioError> {
    let mut sections: Vec<Section<'a>> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = without_comment(line);
        if line.is_empty() {
            continue;
        }
        if let Some(rest) = line.strip_prefix('[') {
            let name = section_name(rest)
                .ok_or_else(|| bad(file, number, "a section such as [job1]", line))?;
            sections.push(Section { name, line: number, options: Vec::new() });
        } else if is_include(line) {
            return Err(FioError::Include { file: file.to_owned(), line: number });
        } else {
            let section = sections.last_mut();
            let section = section.ok_or_else(|| {
                bad(file, number, "a section such as [job1] before any option", line)
            })?;
            section.options.push(option(line, number));
        }
    }
    Ok(sections)
}

/// fio cuts a line at `#` and `;` wherever they stand.
fn without_comment(line: &str) -> &str {
    line.split([';', '#']).next().unwrap_or_default().trim()
}

fn section_name(rest: &str) -> Option<&str> {
    rest.strip_suffix(']').filter(|name| !name.is_empty())
}

fn is_include(line: &str) -> bool {
    line.strip_prefix("include").is_some_and(|rest| rest.starts_with([' ', '\t']))
}

fn option(line: &str, number: u32) -> Line<'_> {
    match line.split_once('=') {
        Some((name, value)) => {
            Line { number, name: name.trim_end(), value: Some(value.trim_start()) }
        }
        None => Line { number, name: line, value: None },
    }
}

fn bad(file: &str, line: u32, expected: &'static str, found: &str) -> FioError {
    FioError::BadLine { file: file.to_owned(), line, expected, found: found.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_options_and_comments() {
        let text = "; c\n[global]\n bs = 4k # here too\n\n[a b]\nthread\n# end";
        let found = sections(text, "f").unwrap();
        assert_eq!(found.len(), 2);
        assert!(found[0].is_global() && !found[1].is_global());
        assert_eq!(found[0].options, [Line { number: 3, name: "bs", value: Some("4k") }]);
        assert_eq!((found[1].name, found[1].line), ("a b", 5));
        assert_eq!(found[1].options, [Line { number: 6, name: "thread", value: None }]);
    }

    #[test]
    fn bad_lines_are_named() {
        let message = |text| sections(text, "f").unwrap_err().to_string();
        assert_eq!(
            message("bs=4k"),
            "f:1: expected a section such as [job1] before any option, found \"bs=4k\""
        );
        assert_eq!(message("\n[a"), "f:2: expected a section such as [job1], found \"[a\"");
        assert!(message("[a]\ninclude b.fio").starts_with("f:2: \"include\" is not supported"));
    }
}
