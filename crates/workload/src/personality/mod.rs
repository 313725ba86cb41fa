//! Filebench personalities as TOML: file sets, and threads that repeat their list of flowops.
//!
//! Names, parameters and behaviour are Filebench 1.5's; `docs/workloads.md` has the format, the
//! sources and what differs. Composite flowops, directories as objects (`makedir`, `listdir`) and
//! random variables other than a gamma distribution of sizes are left out.

mod effect;
mod ending;
mod error;
mod events;
mod files;
mod flowop;
mod io;
mod model;
mod names;
mod namespace;
mod pace;
mod resolve;
mod run;
mod schema;
mod semaphore;
mod semaphores;
mod tally;
mod thread;
mod tree;
mod turn;
mod values;

use std::collections::BTreeMap;
use std::path::Path;

pub use ending::Ending;
pub use error::PersonalityError;
pub use run::PersonalityWorkload;
pub use tally::FlowopTally;

use model::Plan;
use schema::File;
use values::Values;

/// The personalities that come with the project: name and text.
const BUILTIN: [(&str, &str); 7] = [
    ("fileserver", include_str!("../../personalities/fileserver.toml")),
    ("varmail", include_str!("../../personalities/varmail.toml")),
    ("webserver", include_str!("../../personalities/webserver.toml")),
    ("oltp", include_str!("../../personalities/oltp.toml")),
    ("media", include_str!("../../personalities/media.toml")),
    ("office", include_str!("../../personalities/office.toml")),
    ("code", include_str!("../../personalities/code.toml")),
];

/// Names of the personalities that come with the project.
pub fn builtin_personalities() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|(name, _)| *name)
}

/// A personality as it stands in its file, with the parameters that were changed since.
#[derive(Clone, Debug)]
pub struct Personality {
    text: File,
    given: String,
    parameters: BTreeMap<String, String>,
    file: String,
}

impl Personality {
    /// A personality of the project by its name, or one in a file by its path.
    ///
    /// # Errors
    /// No such personality, an unreadable file, a key or value that is not allowed.
    pub fn load(name: &str) -> Result<Self, PersonalityError> {
        if let Some((_, text)) = BUILTIN.iter().find(|(builtin, _)| *builtin == name) {
            return Self::parse(text, &format!("personalities/{name}.toml"));
        }
        if Path::new(name).extension().is_none_or(|extension| extension != "toml") {
            return Err(PersonalityError::Unknown { name: name.into() });
        }
        let text = dovetail_time::read_text(name)
            .map_err(|source| PersonalityError::Read { file: name.into(), source })?;
        Self::parse(&text, name)
    }

    /// Reads a personality from text; `file` is what errors call it.
    ///
    /// # Errors
    /// A key or value that is not allowed.
    pub fn parse(text: &str, file: &str) -> Result<Self, PersonalityError> {
        let parsed: File = toml::from_str(text).map_err(|error| syntax(text, file, &error))?;
        let parameters = parameters(&parsed, file)?;
        let given = text.to_owned();
        let personality = Self { text: parsed, given, parameters, file: file.into() };
        personality.plan()?;
        Ok(personality)
    }

    /// The text that was read; parameters may have other values by now.
    pub fn text(&self) -> &str {
        &self.given
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.text.name
    }

    /// Description in one sentence.
    pub fn about(&self) -> &str {
        &self.text.about
    }

    /// Origin of its flowops and parameters.
    pub fn source(&self) -> &str {
        &self.text.source
    }

    /// Its parameters and their values.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, &str)> {
        self.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The number of its threads.
    ///
    /// # Errors
    /// A value that is not allowed where it is used.
    pub fn threads(&self) -> Result<u32, PersonalityError> {
        Ok(self.plan()?.threads.iter().map(|spec| spec.instances).sum())
    }

    /// Changes parameters: `nfiles` to `5000`, `meanfilesize` to `1m`.
    ///
    /// # Errors
    /// A parameter that it does not have, or a value that is not allowed where the parameter is
    /// used; nothing has changed then.
    pub fn set<'a>(
        &mut self,
        changes: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<(), PersonalityError> {
        let mut changed = self.clone();
        for (name, value) in changes {
            let old =
                changed.parameters.get_mut(name).ok_or_else(|| self.values().no_parameter(name))?;
            *old = value.into();
        }
        changed.plan()?;
        *self = changed;
        Ok(())
    }

    fn values(&self) -> Values<'_> {
        Values { file: &self.file, parameters: &self.parameters }
    }

    fn plan(&self) -> Result<Plan, PersonalityError> {
        resolve::resolve(&self.text, self.values())
    }
}

fn parameters(file: &File, name: &str) -> Result<BTreeMap<String, String>, PersonalityError> {
    let values = Values { file: name, parameters: &BTreeMap::new() };
    let entry = |(key, value): (&String, &toml::Value)| {
        let text = values::text_of(value).filter(|text| !text.starts_with('$'));
        let key_path = format!("parameters.{key}");
        let text =
            text.ok_or_else(|| values.wrong(&key_path, &value.to_string(), "a number or a size"))?;
        Ok((key.clone(), text))
    };
    file.parameters.iter().map(entry).collect()
}

fn syntax(text: &str, file: &str, error: &toml::de::Error) -> PersonalityError {
    let start = error.span().map_or(0, |span| span.start.min(text.len()));
    let line = text.as_bytes()[..start].iter().filter(|&&byte| byte == b'\n').count() + 1;
    PersonalityError::Syntax {
        file: file.into(),
        line,
        message: error.message().trim().replace('\n', " "),
    }
}
