//! `cargo xtask package`: a program that needs no library, as an archive and as a Debian package,
//! with man pages, completions, documentation and the licences of what it is made of.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::files::{copy, write};
use crate::{licences, run, trained};

/// Folder of the results.
const RESULTS: &str = "target/package";
/// Maintainer of the Debian package; DEBFULLNAME and DEBEMAIL are Debian's own variables for it.
const MAINTAINER: [(&str, &str); 2] =
    [("DEBFULLNAME", "The Dovetail authors"), ("DEBEMAIL", "dovetail@localhost")];

/// Builds everything. An argument is the cargo profile: `dist`, which is [`trained`], or `release`,
/// which is built sooner.
pub(crate) fn package(arguments: &[String]) -> Result<(), String> {
    let profile = arguments.first().map_or("dist", String::as_str);
    let build = |flags: &str, folder: &Path| build(profile, flags, folder);
    let flags = if profile == "dist" { trained::flags(build)? } else { String::new() };
    let program = build(&flags, Path::new("target/static"))?;
    let version = env!("CARGO_PKG_VERSION");
    let stage = PathBuf::from(RESULTS).join("stage");
    if stage.exists() {
        std::fs::remove_dir_all(&stage).map_err(|error| format!("{}: {error}", stage.display()))?;
    }
    fill(&stage, &program)?;
    let archive = archive(&stage, version)?;
    println!("{}", archive.display());
    let package = debian(&stage, version)?;
    println!("{}", package.display());
    Ok(())
}

/// The program, linked with its C library (glibc's `libc.a` is part of libc6-dev), with more flags
/// for the compiler.
fn build(profile: &str, flags: &str, folder: &Path) -> Result<PathBuf, String> {
    let target = "x86_64-unknown-linux-gnu";
    run(Command::new("cargo")
        .args(["build", "--locked", "-p", "dovetail-cli", "--profile", profile])
        .args(["--target", target, "--target-dir"])
        .arg(folder)
        .env("RUSTFLAGS", format!("-C target-feature=+crt-static {flags}")))?;
    let program = folder.join(target).join(profile).join("dovetail");
    let linked = Command::new("ldd").arg(&program).output();
    let linked = linked.map_err(|error| format!("ldd: {error}"))?;
    let says = [linked.stdout, linked.stderr].concat();
    let says = String::from_utf8_lossy(&says);
    if says.contains("statically linked") || says.contains("not a dynamic executable") {
        Ok(program)
    } else {
        Err(format!("{} needs libraries: {says}", program.display()))
    }
}

/// The files as they are installed below `/`.
fn fill(stage: &Path, program: &Path) -> Result<(), String> {
    let binary = stage.join("usr/bin/dovetail");
    copy(program, &binary)?;
    run(Command::new("strip").arg("--strip-debug").arg(&binary))?;
    let pages = stage.join("usr/share/man/man1");
    run(Command::new(&binary).arg("man").arg(&pages))?;
    run(Command::new("sh").args(["-c", "gzip -9n \"$0\"/*.1"]).arg(&pages))?;
    for (shell, path) in [
        ("bash", "bash-completion/completions/dovetail"),
        ("zsh", "zsh/vendor-completions/_dovetail"),
        ("fish", "fish/vendor_completions.d/dovetail.fish"),
    ] {
        let output = Command::new(&binary).args(["completions", shell]).output();
        let output = output.map_err(|error| format!("dovetail completions: {error}"))?;
        write(&stage.join("usr/share").join(path), &output.stdout)?;
    }
    let docs = stage.join("usr/share/doc/dovetail");
    for file in ["README.md", "CHANGELOG.md", "CITATION.cff", "LICENSE-MIT", "LICENSE-APACHE"] {
        copy(Path::new(file), &docs.join(file))?;
    }
    run(Command::new("cp").args(["-r", "docs", "examples"]).arg(&docs))?;
    write(&docs.join("copyright"), licences::page()?.as_bytes())
}

fn archive(stage: &Path, version: &str) -> Result<PathBuf, String> {
    let name = format!("dovetail-{version}-x86_64-linux");
    let path = Path::new(RESULTS).join(format!("{name}.tar.gz"));
    run(Command::new("tar")
        .args(["--owner=0", "--group=0", "--sort=name", "-czf"])
        .arg(&path)
        .arg("-C")
        .arg(stage.join("usr"))
        .arg(format!("--transform=s,^[.],{name},"))
        .arg("."))?;
    Ok(path)
}

fn debian(stage: &Path, version: &str) -> Result<PathBuf, String> {
    let variable = |(name, default): (&str, &str)| std::env::var(name).unwrap_or(default.into());
    let [name, email] = MAINTAINER.map(variable);
    let control = format!(
        "Package: dovetail\nVersion: {version}\nArchitecture: amd64\nMaintainer: {name} <{email}>\n\
         Section: admin\nPriority: optional\nSuggests: fuse3, f2fs-tools, e2fsprogs, fio\n\
         Description: flash storage stacks side by side, in virtual time\n \
         Dovetail plays a fio job or a trace on file systems (F2FS, ext4, ext3) and modelled\n \
         drives, and shows what each costs. It also mounts, checks and repairs F2FS images.\n"
    );
    write(&stage.join("DEBIAN/control"), control.as_bytes())?;
    let path = Path::new(RESULTS).join(format!("dovetail_{version}_amd64.deb"));
    run(Command::new("dpkg-deb").args(["--build", "--root-owner-group"]).arg(stage).arg(&path))?;
    Ok(path)
}
