//! A distribution's Linux for a guest: its package, unpacked, and a first root in memory with what
//! it takes to see this machine's files.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::run;

/// A folder with `boot` and `lib/modules` of a Linux to take instead.
const VARIABLE: &str = "DOVETAIL_GUEST_LINUX";
/// Modules that a guest loads, those that they need first. One that is part of the kernel is no
/// file.
const MODULES: [&str; 9] = [
    "virtio_pci",
    "virtio_blk",
    "9pnet_virtio",
    "9p",
    "crc32c_generic",
    "crc32_generic",
    "ext4",
    "f2fs",
    "ublk_drv",
];

/// A Linux that is unpacked.
#[derive(Debug)]
pub(super) struct Linux {
    pub(super) kernel: PathBuf,
    modules: PathBuf,
    pub(super) version: String,
}

impl Linux {
    /// The one that the environment names, or the newest package of the distribution, which is
    /// kept in `folder`.
    pub(super) fn find(folder: &Path) -> Result<Self, String> {
        if let Some(named) = std::env::var_os(VARIABLE) {
            return Self::within(Path::new(&named));
        }
        Self::within(folder).or_else(|_| {
            fetch(folder)?;
            Self::within(folder)
        })
    }

    fn within(root: &Path) -> Result<Self, String> {
        let boot = root.join("boot");
        let mut kernels: Vec<String> = fs::read_dir(&boot)
            .map_err(|error| format!("{}: {error}", boot.display()))?
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter_map(|name| Some(name.strip_prefix("vmlinuz-")?.to_owned()))
            .filter(|version| root.join("lib/modules").join(version).is_dir())
            .collect();
        kernels.sort_by_key(|version| numbers(version));
        let none = || format!("{} holds no Linux with its modules", root.display());
        let version = kernels.pop().ok_or_else(none)?;
        Ok(Self {
            kernel: boot.join(format!("vmlinuz-{version}")),
            modules: root.join("lib/modules").join(&version),
            version,
        })
    }

    /// Makes the guest's first root, an archive of cpio, at `archive`; `place` is a folder for what
    /// goes in.
    pub(super) fn make_root(&self, place: &Path, archive: &Path) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("{}: {error}", place.display());
        for folder in ["bin", "modules"] {
            fs::create_dir_all(place.join(folder)).map_err(failed)?;
        }
        let init = place.join("init");
        fs::write(&init, include_str!("init.sh")).map_err(failed)?;
        fs::set_permissions(&init, PermissionsExt::from_mode(0o755)).map_err(failed)?;
        let order = self.load(&place.join("modules"))?;
        fs::write(place.join("modules/order"), order.join("\n") + "\n").map_err(failed)?;
        copy_program("busybox", place)?;
        let pack = format!(
            "find . | busybox cpio -o -H newc | gzip -1 > '{}'",
            archive.canonicalize().unwrap_or_else(|_| archive.to_path_buf()).display()
        );
        run(Command::new("sh").args(["-c", &pack]).current_dir(place).stderr(Stdio::null()))
    }

    /// Unpacks the modules, and tells the order in which they are to be loaded.
    fn load(&self, into: &Path) -> Result<Vec<String>, String> {
        let mut files = Vec::new();
        list(&self.modules, &mut files);
        let (mut order, mut seen) = (Vec::new(), BTreeSet::new());
        for module in MODULES {
            self.load_one(module, &files, into, &mut seen, &mut order)?;
        }
        Ok(order)
    }

    fn load_one(
        &self,
        module: &str,
        files: &[PathBuf],
        into: &Path,
        seen: &mut BTreeSet<String>,
        order: &mut Vec<String>,
    ) -> Result<(), String> {
        if !seen.insert(module.to_owned()) {
            return Ok(());
        }
        // one that is not there is part of the kernel, or the guest will miss it
        let Some(file) = files.iter().find(|file| module_of(file).as_deref() == Some(module))
        else {
            return Ok(());
        };
        let bytes = unpacked(file)?;
        for needed in needs(&bytes) {
            self.load_one(&needed, files, into, seen, order)?;
        }
        let to = into.join(format!("{module}.ko"));
        fs::write(&to, bytes).map_err(|error| format!("{}: {error}", to.display()))?;
        order.push(module.to_owned());
        Ok(())
    }
}

/// The name of the module in a file, as modules are called in each other's lists.
fn module_of(file: &Path) -> Option<String> {
    let (name, rest) = file.file_name()?.to_str()?.split_once('.')?;
    (rest == "ko" || rest.starts_with("ko.")).then(|| name.replace('-', "_"))
}

/// Names of the modules that a module needs, by its own account.
fn needs(module: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let Some(at) = module.windows(KEY.len()).position(|window| window == KEY) else {
        return Vec::new();
    };
    let rest = &module[at + KEY.len()..];
    let end = rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len());
    let names = String::from_utf8_lossy(&rest[..end]).replace('-', "_");
    names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn unpacked(file: &Path) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", file.display());
    let program = match file.extension().and_then(|extension| extension.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        Some("gz") => "gzip",
        _ => return fs::read(file).map_err(failed),
    };
    let output = Command::new(program).arg("-dc").arg(file).output().map_err(failed)?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(format!("{program} cannot unpack {}", file.display()))
    }
}

fn list(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            list(&path, into);
        } else {
            into.push(path);
        }
    }
}

/// Copies a program into the root `place`, with the libraries that it needs.
fn copy_program(name: &str, place: &Path) -> Result<(), String> {
    let output = Command::new("sh").args(["-c", &format!("command -v {name}")]).output();
    let path = output.map_err(|error| error.to_string())?.stdout;
    let path = PathBuf::from(String::from_utf8_lossy(&path).trim());
    let copy = |from: &Path, to: PathBuf| {
        let parent = to.parent().map_or(Ok(()), fs::create_dir_all);
        let copied = parent.and_then(|()| fs::copy(from, &to));
        copied.map(drop).map_err(|error| format!("{}: {error}", from.display()))
    };
    copy(&path, place.join("bin").join(name))?;
    let linked = Command::new("ldd").arg(&path).output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&linked.stdout).into_owned();
    let libraries = text.split_whitespace().filter(|word| word.starts_with('/'));
    for library in libraries {
        copy(Path::new(library), place.join(library.trim_start_matches('/')))?;
    }
    Ok(())
}

/// Takes the newest package of the distribution's Linux, and unpacks it into `folder`.
fn fetch(folder: &Path) -> Result<(), String> {
    let missing = || {
        format!(
            "no package linux-image-6...-amd64 is known here, and a guest needs a Linux with its modules: \
             `apt-get update && apt-get install linux-image-amd64`, then {VARIABLE}=/ (or a folder with boot and \
             lib/modules of another one)"
        )
    };
    let names = Command::new("apt-cache").args(["pkgnames", "linux-image-6."]).output();
    let names = names.map_err(|_| missing())?.stdout;
    let package = newest(&String::from_utf8_lossy(&names)).ok_or_else(missing)?;
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    println!("downloading {package} (100 MB), and keeping it in {}", folder.display());
    run(Command::new("apt-get").args(["download", "-qq", &package]).current_dir(folder))?;
    run(Command::new("sh")
        .args(["-c", "dpkg-deb -x linux-image-*.deb . && rm linux-image-*.deb"])
        .current_dir(folder))
}

/// The newest of the general kernels among names of packages.
fn newest(names: &str) -> Option<String> {
    let is_general = |name: &&str| {
        name.ends_with("-amd64") && !name.contains("-cloud-") && !name.contains("-rt-")
    };
    names.lines().filter(is_general).max_by_key(|name| numbers(name)).map(str::to_owned)
}

/// The numbers in a version, by which versions are ordered.
fn numbers(version: &str) -> Vec<u64> {
    version.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_general_kernel_is_taken() {
        let names = "linux-image-6.1.0-56-amd64\nlinux-image-6.12.9+deb12-amd64\n\
                     linux-image-6.12.117+deb12-amd64\nlinux-image-6.13.1-cloud-amd64\n\
                     linux-image-6.13.1-rt-amd64\nlinux-image-6.13.1-amd64-unsigned";
        assert_eq!(newest(names).as_deref(), Some("linux-image-6.12.117+deb12-amd64"));
        assert_eq!(newest(""), None);
    }

    #[test]
    fn a_module_tells_what_it_needs() {
        let module = b"x\0license=GPL\0depends=virtio,virtio-ring\0name=virtio_pci\0";
        assert_eq!(needs(module), ["virtio", "virtio_ring"]);
        assert_eq!(needs(b"\0depends=\0name=virtio\0"), [""; 0]);
        assert_eq!(module_of(Path::new("/a/crc32c-intel.ko.xz")).as_deref(), Some("crc32c_intel"));
        assert_eq!(module_of(Path::new("/a/modules.dep")), None);
    }
}
