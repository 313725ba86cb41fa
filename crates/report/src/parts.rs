//! Parts of the reports' page, for other pages that look like them.

pub use super::page::{CHARTS_JS, CSS, DARK_CSS, LIBRARY_CSS, LIBRARY_JS, LIBRARY_LICENSE, fill};
