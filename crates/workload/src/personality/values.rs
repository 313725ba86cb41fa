//! Values of a personality's keys: numbers, sizes and yes-or-no, given outright or as `$parameter`.

use std::collections::BTreeMap;

use dovetail_time::parse_bytes;
use toml::Value;

use super::error::PersonalityError;

/// Source of values: the file, and the parameters that they may name.
#[derive(Clone, Copy)]
pub(super) struct Values<'a> {
    pub(super) file: &'a str,
    pub(super) parameters: &'a BTreeMap<String, String>,
}

/// A value of TOML as the text that stands for it; tables and lists have none.
pub(super) fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => Some(value.to_string()),
        _ => None,
    }
}

impl Values<'_> {
    pub(super) fn wrong(
        &self,
        key: &str,
        value: &str,
        allowed: impl Into<String>,
    ) -> PersonalityError {
        PersonalityError::Value {
            file: self.file.into(),
            key: key.into(),
            value: format!("'{value}'"),
            allowed: allowed.into(),
        }
    }

    pub(super) fn missing(&self, key: &str) -> PersonalityError {
        PersonalityError::Missing { file: self.file.into(), key: key.into() }
    }

    fn text(&self, key: &str, value: &Value) -> Result<String, PersonalityError> {
        let plain = "a number, a size, true or false, or $ and a parameter";
        let text = text_of(value).ok_or_else(|| self.wrong(key, &value.to_string(), plain))?;
        match text.strip_prefix('$') {
            Some(name) => self.parameters.get(name).cloned().ok_or_else(|| self.no_parameter(name)),
            None => Ok(text),
        }
    }

    pub(super) fn no_parameter(&self, name: &str) -> PersonalityError {
        let known = self.parameters.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        PersonalityError::Parameter { file: self.file.into(), name: name.into(), known }
    }

    /// A whole number or size in `least..=most`, or `default` if there is none.
    pub(super) fn number(
        &self,
        key: &str,
        value: Option<&Value>,
        default: u64,
        (least, most): (u64, u64),
    ) -> Result<u64, PersonalityError> {
        let Some(value) = value else { return Ok(default) };
        let text = self.text(key, value)?;
        let allowed = || format!("a whole number or a size such as 16k, from {least} to {most}");
        let number = parse_bytes(&text).map_err(|_| self.wrong(key, &text, allowed()))?;
        if !(least..=most).contains(&number) {
            return Err(self.wrong(key, &text, allowed()));
        }
        Ok(number)
    }

    /// As [`Self::number`], but it has to be there.
    pub(super) fn needed(
        &self,
        key: &str,
        value: Option<&Value>,
        range: (u64, u64),
    ) -> Result<u64, PersonalityError> {
        value.ok_or_else(|| self.missing(key))?;
        self.number(key, value, 0, range)
    }

    /// A shape of a gamma distribution.
    pub(super) fn shape(
        &self,
        key: &str,
        value: Option<&Value>,
        default: f64,
    ) -> Result<f64, PersonalityError> {
        let Some(value) = value else { return Ok(default) };
        let text = self.text(key, value)?;
        let number =
            text.parse().ok().filter(|shape| *shape == 0.0 || (0.1..=10.0).contains(shape));
        number.ok_or_else(|| self.wrong(key, &text, "0 (no distribution) or 0.1 to 10"))
    }

    /// Yes or no; 1 and 0 too, as Filebench writes them.
    pub(super) fn flag(&self, key: &str, value: Option<&Value>) -> Result<bool, PersonalityError> {
        let Some(value) = value else { return Ok(false) };
        match self.text(key, value)?.as_str() {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            other => Err(self.wrong(key, other, "true or false")),
        }
    }
}
