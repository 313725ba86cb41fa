//! Files that chores write, with errors that name them; folders are made as needed.

use std::path::Path;

pub(crate) fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), String> {
    make_folder(to)?;
    let copied = std::fs::copy(from, to).map(drop);
    copied.map_err(|error| format!("{} to {}: {error}", from.display(), to.display()))
}

pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    make_folder(path)?;
    std::fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()))
}

fn make_folder(path: &Path) -> Result<(), String> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}
