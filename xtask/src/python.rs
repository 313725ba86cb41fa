//! The Python package: its wheel, built and tested in an environment of its own below target/.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run;

/// Package that builds the wheel.
const BUILDER: &str = "maturin>=1.8,<2";
/// Debian's package of Python's module venv.
pub(crate) const VENV: &str = "python3-venv";
/// Only makes the environment.
const PREPARE: &str = "--prepare";

/// The environment of the tests.
struct Environment {
    folder: PathBuf,
}

impl Environment {
    fn program(&self, name: &str) -> PathBuf {
        self.folder.join("bin").join(name)
    }

    /// Makes it, with all that builds and tests the package, if it is not there.
    fn make(root: &Path) -> Result<Self, String> {
        let environment = Self { folder: root.join("target/python") };
        let is_ready = environment.folder.join("ready");
        if is_ready.exists() {
            return Ok(environment);
        }
        let venv = || run(Command::new("python3").args(["-m", "venv"]).arg(&environment.folder));
        if venv().is_err() {
            // Debian has the module in a package of its own
            crate::install(&[(VENV, VENV)])?;
            venv()?;
        }
        let pip = environment.program("pip");
        run(Command::new(&pip).args(["install", "--quiet", BUILDER]))?;
        // the package's own list of what its tests need, without the package
        let list = requirements(&root.join("python/pyproject.toml"))?;
        run(Command::new(&pip).args(["install", "--quiet"]).args(list))?;
        std::fs::write(is_ready, "").map_err(|error| error.to_string())?;
        Ok(environment)
    }
}

/// All optional dependencies of the package, as pip takes them.
fn requirements(project: &Path) -> Result<Vec<String>, String> {
    let text = std::fs::read_to_string(project).map_err(|error| error.to_string())?;
    let project: toml::Table = toml::from_str(&text).map_err(|error| error.to_string())?;
    let groups = project["project"]["optional-dependencies"].as_table();
    let lists = groups.into_iter().flat_map(|groups| groups.values());
    let all = lists.filter_map(toml::Value::as_array).flatten().filter_map(toml::Value::as_str);
    let others = all.filter(|name| !name.starts_with("dovetail")).map(String::from);
    Ok(others.collect())
}

/// Builds the wheel, installs it, and runs its tests and the check of its types.
pub(crate) fn python(arguments: &[String]) -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let root = root.canonicalize().map_err(|error| error.to_string())?;
    let environment = Environment::make(&root)?;
    if arguments.iter().any(|argument| argument == PREPARE) {
        return Ok(());
    }
    let package = root.join("python");
    let wheels = root.join("target/wheels");
    if wheels.exists() {
        std::fs::remove_dir_all(&wheels).map_err(|error| error.to_string())?;
    }
    // the profile of the other tests, of which much is built already
    run(Command::new(environment.program("maturin"))
        .args(["build", "--quiet", "--profile", "dev", "--out"])
        .arg(&wheels)
        .current_dir(&package))?;
    let wheel = std::fs::read_dir(&wheels).map_err(|error| error.to_string())?.flatten().next();
    let wheel = wheel.ok_or("no wheel was built")?.path();
    run(Command::new(environment.program("pip"))
        .args(["install", "--quiet", "--force-reinstall", "--no-deps"])
        .arg(wheel))?;
    let mut tests = Command::new(environment.program("pytest"));
    // the wheel, not the folder beside the tests
    tests.args(["-q", "-p", "no:cacheprovider"]).arg(package.join("tests")).args(arguments);
    let program = root.join("target/debug/dovetail");
    if program.exists() {
        tests.env("DOVETAIL", program);
    }
    run(tests.current_dir(&root))?;
    run(Command::new(environment.program("mypy")).arg("dovetail").current_dir(&package))
}
