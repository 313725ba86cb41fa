//! Names of an image removed, made and moved; labels; several sources of a copy. The checkers that
//! others wrote look after each step.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::referee::{check_clean, run};

fn dovetail(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dovetail")).args(arguments).output().unwrap()
}

/// An image that is changed, and the folder that it lies in.
struct Image {
    folder: tempfile::TempDir,
    path: String,
    kind: &'static str,
}

impl Image {
    fn in_folder(kind: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image").to_str().unwrap().to_string();
        Self { folder, path, kind }
    }

    fn new(kind: &'static str) -> Self {
        let image = Self::in_folder(kind);
        let made = dovetail(&["mkfs", kind, &image.path, "--size", "128M"]);
        assert_eq!(made.status.code(), Some(0), "{made:?}");
        image
    }

    /// One that a kernel wrote.
    fn of_kernel(kind: &'static str) -> Self {
        let image = Self::in_folder(kind);
        let family = if kind == "f2fs" { "f2fs" } else { "ext" };
        let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(family);
        let bytes = crate::unzstd(&images.join(format!("tests/images/{kind}-default.img.zst")));
        fs::write(&image.path, bytes).unwrap();
        image
    }

    fn all() -> impl Iterator<Item = Self> {
        let kinds = ["f2fs", "ext4", "ext3"];
        kinds.into_iter().flat_map(|kind| [Self::new(kind), Self::of_kernel(kind)])
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_string()
    }

    /// Arguments with `:` at the start of those that are paths in the image.
    fn run(&self, line: &str) -> Output {
        let words = line.split(' ').map(|word| match word.strip_prefix(':') {
            Some(path) => format!("{}:{path}", self.path),
            None => word.replace('@', &self.path),
        });
        let words: Vec<_> = words.collect();
        dovetail(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Does it, and has it checked.
    fn done(&self, line: &str) -> String {
        let run = self.run(line);
        assert_eq!(run.status.code(), Some(0), "{} {line}: {run:?}", self.kind);
        check_clean(&self.path, self.kind);
        String::from_utf8(run.stdout).unwrap()
    }

    fn refused(&self, line: &str) -> String {
        let run = self.run(line);
        assert_eq!(run.status.code(), Some(1), "{} {line}: {run:?}", self.kind);
        check_clean(&self.path, self.kind);
        String::from_utf8(run.stderr).unwrap()
    }
}

#[test]
fn names_are_made_moved_and_removed() {
    for image in Image::all() {
        let before = image.done("ls @ /");
        let file = image.path("file");
        fs::write(&file, vec![7; 5 << 20]).unwrap();
        image.done("mkdir :/new :/new/below");
        assert!(image.refused("mkdir :/new").contains("cannot make /new: the name is taken"));
        assert!(image.refused("mkdir :/zz/b/c").contains("cannot make /zz/b/c: no such file"));
        image.done("mkdir -p :/zz/b/c :/new/below");
        image.done(&format!("cp {file} :/new/below/large"));
        image.done("mv :/new/below/large :/zz/b/");
        assert!(image.refused("mv :/none :/zz").contains("cannot move /none to /zz: no such file"));
        assert!(image.refused("mv :/zz :/zz/b").contains("cannot move /zz to /zz/b: "));
        image.done("mv :/zz/b :/new/moved");
        image.done("ln -s ../moved/large :/new/below/link");
        image.done("ln :/new/moved/large :/new/again");
        assert_eq!(image.run("cat @ /new/below/link").stdout, vec![7; 5 << 20]);
        let listed = image.done("ls -R @ /new");
        let heads: Vec<_> = listed.lines().filter(|line| line.ends_with(':')).collect();
        assert_eq!(heads, ["/new:", "/new/below:", "/new/moved:", "/new/moved/c:"]);
        assert!(listed.contains(" link -> ../moved/large\n"), "{listed}");
        let said = image.refused("mv :/new/again :/new/moved/large");
        assert!(said.contains("/new/again and /new/moved/large are the same file"), "{said}");
        image.done("ln -s none :/new/nowhere");
        let said = image.refused("cat @ /new/nowhere");
        assert!(said.contains("/new/nowhere is a link that leads nowhere"), "{said}");
        image.done("mv :/new/again :/new/moved/large :/zz");
        assert!(image.refused("mv :/zz :/new :/none").contains("/none is not a directory"));
        let said = image.refused("rm :/zz :/new/below/none :/new/below/link");
        assert!(said.contains("cannot remove /zz: it is a directory; -r"), "{said}");
        assert!(said.contains("cannot remove /new/below/none: no such file"), "{said}");
        assert!(!image.done("ls @ /new/below").contains("link"), "the rest goes");
        image.done("rm -f :/new/below/none");
        image.done("rm -r :/zz :/new");
        assert_eq!(names(&image.done("ls @ /")), names(&before), "{}", image.kind);
        assert!(image.refused("rm -r :/").contains("cannot remove /: "));
    }
}

#[test]
fn two_of_one_name_never_replace_each_other() {
    for image in ["f2fs", "ext4"].map(Image::new) {
        image.done("mkdir :/a :/b :/to");
        let (one, two) = (image.path("x"), image.path("below/x"));
        fs::create_dir(image.path("below")).unwrap();
        fs::write(&one, "one").unwrap();
        fs::write(&two, "two").unwrap();
        let said = image.refused(&format!("cp {one} {two} :/to"));
        assert!(said.contains("will not overwrite just-created"), "{said}");
        assert!(!image.done("ls @ /to").contains(" x\n"));
        image.done(&format!("cp {one} :/a/"));
        image.done(&format!("cp {two} :/b/"));
        image.done(&format!("cp {two} :/b/other"));
        for line in ["mv :/a/x :/b/x :/to", "mv :/b/other :/a/x :/b/x/ :/to/"] {
            let said = image.refused(line);
            assert!(said.contains("just-created /a/x with /b/x"), "{said}");
        }
        let out = image.path("out");
        fs::create_dir(&out).unwrap();
        let said = image.refused(&format!("cp :/a/x :/b/x {out}"));
        assert!(said.contains("will not overwrite just-created"), "{said}");
        assert_eq!(fs::read_dir(&out).unwrap().count(), 0);
        assert_eq!(image.run("cat @ /a/x").stdout, b"one");
        assert_eq!(image.run("cat @ /b/x").stdout, b"two");
        assert_eq!(image.run("cat @ /b/other").stdout, b"two", "nothing was moved");
    }
}

/// The names of a listing.
fn names(listing: &str) -> Vec<&str> {
    listing.lines().filter_map(|line| line.rsplit(' ').next()).collect()
}

#[test]
fn a_tree_of_the_kernel_is_removed_whole() {
    for kind in ["f2fs", "ext4", "ext3"] {
        let image = Image::of_kernel(kind);
        let all = image.done("ls @ /");
        let plain: Vec<_> = all
            .lines()
            .filter(|line| line.starts_with('d'))
            .filter_map(|line| line.rsplit(' ').next())
            .filter(|name| *name != "lost+found")
            .map(|name| format!(":/{name}"))
            .collect();
        assert!(!plain.is_empty(), "{all}");
        image.done(&format!("rm -r {}", plain.join(" ")));
        let left = image.done("ls @ /");
        assert!(left.lines().all(|line| !line.starts_with('d') || line.ends_with("lost+found")));
    }
}

#[test]
fn several_sources_go_to_a_directory() {
    for image in Image::all() {
        let paths = ["one", "two", "three"].map(|name| image.path(name));
        paths.iter().for_each(|path| fs::write(path, format!("{path}\n")).unwrap());
        let [one, two, three] = &paths;
        let all = format!("{one} {two} {three}");
        assert!(image.refused(&format!("cp {all} :/dir")).contains("/dir is not a directory"));
        assert!(image.refused(&format!("cp {one} :/dir/")).contains("/dir/ is not a directory"));
        image.done("mkdir :/dir");
        image.done(&format!("cp {all} :/dir/"));
        let out = image.path("out");
        assert!(image.refused(&format!("cp :/dir/one :/dir/two {out}")).contains("out is not"));
        fs::create_dir(&out).unwrap();
        image.done(&format!("cp :/dir/one :/dir/three {out}"));
        for name in ["one", "three"] {
            let read = |folder: &str| fs::read(format!("{folder}/{name}")).unwrap();
            assert_eq!(read(&out), read(image.folder.path().to_str().unwrap()));
        }
        assert_eq!(fs::read_dir(&out).unwrap().count(), 2);
    }
}

#[test]
fn what_does_not_fit_is_refused_or_removed() {
    for kind in ["f2fs", "ext4"] {
        let image = Image::new(kind);
        let large = image.path("large");
        fs::write(&large, vec![1; 200 << 20]).unwrap();
        let before = fs::read(&image.path).unwrap();
        let said = image.refused(&format!("cp {large} :/large"));
        assert!(said.contains("no space is left on the volume for 200 MiB"), "{said}");
        assert!(said.ends_with("nothing was written\n"), "{said}");
        let names = |line: &str| names(&image.done(line)).join(" ");
        assert!(!names("ls @ /").contains("large"));
        assert_eq!(before.len(), fs::read(&image.path).unwrap().len());

        // what is known before is the content; its nodes or extents take room as well, and reserves
        // cannot be filled: below the size that is refused there are some that fail on the way
        let (old, part) = (image.path("old"), image.path("part"));
        fs::write(&old, vec![2; 30 << 20]).unwrap();
        image.done(&format!("cp {old} :/kept"));
        let (mut fits, mut refused, mut on_the_way) = (0, 200 << 8, 0);
        while refused - fits > 1 {
            let blocks = usize::midpoint(fits, refused);
            fs::write(&part, vec![3; blocks << 12]).unwrap();
            let said = String::from_utf8(image.run(&format!("cp {part} :/part")).stderr).unwrap();
            let listed = names("ls @ /");
            assert!(!listed.contains("dovetail-cp"), "{listed}");
            assert_eq!(said.is_empty(), listed.contains("part"), "{blocks}: {said} {listed}");
            if said.ends_with("nothing was written\n") {
                refused = blocks;
            } else {
                fits = blocks;
                on_the_way += u32::from(said.contains("part: no space is left on the volume\n"));
                image.done("rm -f :/part");
            }
        }
        assert!(on_the_way > 0 || kind != "f2fs", "{kind}");
        assert!(fits > 5000, "{kind}: {fits}");
        assert_eq!(image.run("cat @ /kept").stdout, vec![2; 30 << 20]);
    }
}

#[test]
fn labels_are_those_of_the_programs_of_others() {
    for image in Image::all() {
        assert_eq!(image.done("label @"), "\n");
        image.done("label @ Grün");
        assert_eq!(image.done("label @"), "Grün\n");
        match image.kind {
            "f2fs" => {
                let said = run("dump.f2fs", "f2fs-tools", &["-d", "1", &image.path]);
                assert!(String::from_utf8_lossy(&said.stdout).contains("Grün"), "{said:?}");
            }
            _ => {
                let said = run("e2label", "e2fsprogs", &[&image.path]);
                assert_eq!(said.stdout, "Grün\n".as_bytes());
            }
        }
        let most = if image.kind == "f2fs" { 512 } else { 16 };
        image.done(&format!("label @ {}", "x".repeat(most)));
        let long = image.run(&format!("label @ {}", "x".repeat(most + 1)));
        assert_eq!(long.status.code(), Some(2), "{long:?}");
        assert!(String::from_utf8_lossy(&long.stderr).contains(&format!("has {}", most + 1)));
        let emptied = dovetail(&["label", &image.path, ""]);
        assert_eq!(emptied.status.code(), Some(0));
        assert_eq!(image.done("label @"), "\n");
        if image.kind == "f2fs" {
            fs::OpenOptions::new()
                .write(true)
                .open(&image.path)
                .and_then(|file| file.set_len(20 << 20))
                .unwrap();
            let short = image.run("label @ short");
            assert!(String::from_utf8_lossy(&short.stderr).contains("cut short"), "{short:?}");
        }
    }
}
