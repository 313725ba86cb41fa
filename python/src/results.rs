//! Results of runs, held in Rust.

use dovetail_cli::call;
use dovetail_lab::results::{RunResult, SCHEMA, SchemaError, check_schema};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use serde_json::Value;

use crate::errors::{failed, of, refused};
use crate::frame::Frame;

/// End of a sentence: what can be given instead.
const GIVE: &str = "give what bench or replay wrote with --json";

/// Results of a bench or a replay.
#[pyclass(frozen, module = "dovetail._dovetail")]
pub(crate) struct Results {
    results: dovetail_lab::results::Results,
}

impl From<dovetail_lab::results::Results> for Results {
    fn from(results: dovetail_lab::results::Results) -> Self {
        Self { results }
    }
}

impl Results {
    /// Results of JSON, as they were before they were written; or what is wrong with the text.
    fn parse(text: &str) -> Result<Self, String> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| format!("is no JSON ({error}): {GIVE}"))?;
        let is_of_figures = || {
            let mut figures = value.as_object().into_iter().flat_map(|all| all.values());
            figures.any(|figure| figure["results"]["schema"] == SCHEMA)
        };
        check_schema(&value).map_err(|error| match error {
            SchemaError::Other if is_of_figures() => {
                "is of `dovetail reproduce`: give the results of one of its figures".into()
            }
            SchemaError::Other => format!("{error}: {GIVE}"),
            version => version.to_string(),
        })?;
        let results: dovetail_lab::results::Results =
            serde_json::from_value(value).map_err(|error| format!("is damaged: {error}"))?;
        Ok(results.into())
    }

    fn run(&self, number: usize) -> PyResult<&RunResult> {
        self.results.runs.get(number).ok_or_else(|| PyIndexError::new_err("there is no such run"))
    }
}

#[pymethods]
impl Results {
    /// Results of the text that `--json` writes; errors call it `name`.
    #[new]
    fn new(py: Python<'_>, text: &str, name: &str) -> PyResult<Self> {
        let parsed = py.detach(|| Self::parse(text));
        parsed.map_err(|problem| refused(format!("{name} {problem}")))
    }

    /// Number of runs.
    fn __len__(&self) -> usize {
        self.results.runs.len()
    }

    /// The bytes that `--json` writes.
    fn json(&self) -> PyResult<String> {
        call::json(&self.results).map_err(of)
    }

    /// The same of results with one run alone.
    fn run_json(&self, run: usize) -> PyResult<String> {
        let runs = vec![self.run(run)?.clone()];
        call::json(&dovetail_lab::results::Results { runs, ..self.results.clone() }).map_err(of)
    }

    /// The table that the command line shows.
    fn table(&self, width: usize) -> String {
        call::table(&self.results, width)
    }

    /// The report that `--report` writes.
    fn html(&self) -> String {
        dovetail_report::html(&self.results)
    }

    /// Single figures: a row for each run.
    fn figures(&self) -> PyResult<Frame> {
        let rows = self.results.runs.iter().map(call::figures).collect::<Result<Vec<_>, _>>();
        Frame::of_rows(rows.map_err(of)?)
    }

    /// Figures over time of a run.
    fn series(&self, run: usize) -> PyResult<Frame> {
        let series = serde_json::to_value(&self.run(run)?.series).map_err(failed)?;
        Frame::of(columns("", series))
    }

    /// The distribution of the latency of a kind of command.
    fn latency(&self, run: usize, kind: &str) -> PyResult<Frame> {
        let latency = &self.run(run)?.latency;
        let of = match kind {
            "read" => &latency.read,
            "write" => &latency.write,
            "flush" => &latency.flush,
            "discard" => &latency.discard,
            _ => return Err(refused(format!("\"{kind}\" is none of read, write, flush, discard"))),
        };
        let (latencies, shares) =
            of.cdf.iter().map(|(at, share)| (Value::from(*at), Value::from(*share))).unzip();
        Frame::of(vec![("latency_ns".into(), latencies), ("share".into(), shares)])
    }
}

/// Lists of an object, those of objects within it named by their path with dots.
fn columns(path: &str, value: Value) -> Vec<(String, Vec<Value>)> {
    match value {
        Value::Array(values) => vec![(path.to_owned(), values)],
        Value::Object(parts) => {
            let dot = if path.is_empty() { "" } else { "." };
            let part = |(name, value)| columns(&format!("{path}{dot}{name}"), value);
            parts.into_iter().flat_map(part).collect()
        }
        _ => Vec::new(),
    }
}

/// A figure of a paper, run again.
#[pyclass(frozen, module = "dovetail._dovetail")]
pub(crate) struct Reproduction {
    name: &'static str,
    text: String,
    results: Py<Results>,
}

impl Reproduction {
    pub(crate) fn new(
        py: Python<'_>,
        name: &'static str,
        reproduction: dovetail_papers::Reproduction,
    ) -> PyResult<Self> {
        let text = serde_json::to_string(&reproduction.comparisons).map_err(failed)?;
        Ok(Self { name, text, results: Py::new(py, Results::from(reproduction.results))? })
    }
}

#[pymethods]
impl Reproduction {
    /// Name of the figure.
    #[getter]
    fn name(&self) -> &str {
        self.name
    }

    /// Its statements as JSON: what, paper, ours, rule.
    fn statements(&self) -> &str {
        &self.text
    }

    /// The runs behind it.
    #[getter]
    fn results(&self, py: Python<'_>) -> Py<Results> {
        self.results.clone_ref(py)
    }
}
