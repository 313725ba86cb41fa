//! Tables for pandas, polars and others, through Arrow's C interface.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator,
    RecordBatchReader, StringArray, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use serde_json::Value;

use crate::errors::{failed, internal, refused};

/// Columns of equal length, which other libraries take without copying.
#[pyclass(frozen, module = "dovetail._dovetail")]
pub(crate) struct Frame {
    batch: RecordBatch,
}

impl Frame {
    /// A frame of columns; what a shorter column lacks is null. A column is truth
    /// values or numbers if all of its values are, or null; else texts.
    pub(crate) fn of(columns: Vec<(String, Vec<Value>)>) -> PyResult<Self> {
        let rows = columns.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        for (name, mut values) in columns {
            values.resize(rows, Value::Null);
            let array = array(&values);
            fields.push(Field::new(name, array.data_type().clone(), true));
            arrays.push(array);
        }
        let schema = Arc::new(Schema::new(fields));
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(schema, arrays, &options);
        Ok(Self { batch: batch.map_err(failed)? })
    }

    /// A frame of rows, each with its values by name: columns in the order in which they first come.
    pub(crate) fn of_rows(rows: Vec<Vec<(String, Value)>>) -> PyResult<Self> {
        let mut columns: Vec<(String, Vec<Value>)> = Vec::new();
        let mut places = std::collections::HashMap::new();
        for (number, row) in rows.into_iter().enumerate() {
            for (name, value) in row {
                let place = *places.entry(name.clone()).or_insert(columns.len());
                if place == columns.len() {
                    columns.push((name, Vec::new()));
                }
                let values = &mut columns[place].1;
                values.resize(number, Value::Null);
                values.push(value);
            }
        }
        Self::of(columns)
    }
}

/// The narrowest type that holds all values.
fn array(values: &[Value]) -> ArrayRef {
    let all = |is: fn(&Value) -> bool| values.iter().all(|value| value.is_null() || is(value));
    if values.iter().all(Value::is_null) {
        return Arc::new(Float64Array::new_null(values.len()));
    }
    if all(Value::is_boolean) {
        return Arc::new(values.iter().map(Value::as_bool).collect::<BooleanArray>());
    }
    if all(Value::is_i64) {
        return Arc::new(values.iter().map(Value::as_i64).collect::<Int64Array>());
    }
    if all(Value::is_u64) {
        return Arc::new(values.iter().map(Value::as_u64).collect::<UInt64Array>());
    }
    if all(Value::is_number) {
        return Arc::new(values.iter().map(Value::as_f64).collect::<Float64Array>());
    }
    let text = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    Arc::new(values.iter().map(text).collect::<StringArray>())
}

#[pymethods]
impl Frame {
    /// A frame of columns in JSON: a list of names and values.
    #[new]
    fn new(json: &str) -> PyResult<Self> {
        Self::of(serde_json::from_str(json).map_err(refused)?)
    }

    /// Number of rows.
    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The values of a column, as a list; null is None.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let array = self.batch.column_by_name(name).ok_or_else(|| {
            let all = self.columns().join(", ");
            refused(format!("there is no column \"{name}\" (there are: {all})"))
        })?;
        list(py, array)
    }

    /// Arrow's C stream interface, for `pandas.DataFrame.from_arrow`, `polars.DataFrame`,
    /// `pyarrow.table` and others.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // a consumer may ask for other types; the interface lets the producer decline
        drop(requested_schema);
        let schema = self.batch.schema();
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], schema);
        let reader: Box<dyn RecordBatchReader + Send> = Box::new(batches);
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
    }
}

fn list<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Bound<'py, PyAny>> {
    fn of<A: 'static>(array: &ArrayRef) -> PyResult<&A> {
        array.as_any().downcast_ref().ok_or_else(|| internal("a column of another type"))
    }
    match array.data_type() {
        DataType::Boolean => {
            of::<BooleanArray>(array)?.iter().collect::<Vec<_>>().into_pyobject(py)
        }
        DataType::Int64 => of::<Int64Array>(array)?.iter().collect::<Vec<_>>().into_pyobject(py),
        DataType::UInt64 => of::<UInt64Array>(array)?.iter().collect::<Vec<_>>().into_pyobject(py),
        DataType::Float64 => {
            of::<Float64Array>(array)?.iter().collect::<Vec<_>>().into_pyobject(py)
        }
        _ => of::<StringArray>(array)?.iter().collect::<Vec<_>>().into_pyobject(py),
    }
}
