//! Try.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]
use dovetail_ftl::*;
use dovetail_linux::*;
use std::time::*;
fn main() {
    let kernel = std::env::args().nth(1).unwrap();
    let script = std::fs::read_to_string(std::env::args().nth(2).unwrap()).unwrap();
    let profile = Profile::load("femu-32g").unwrap();
    let overrides = Overrides { scale: Some("1/16".parse().unwrap()), ..Overrides::default() };
    let drive = Storage::new(profile.resolve(&overrides).unwrap()).unwrap();
    let out = tempfile::tempdir().unwrap();
    let guest = Guest { kernel: kernel.into(), memory: 512 << 20, syscall_ns: 1000, request_ns: 2000, script, out: out.path().into(), silence: Duration::from_secs(60) };
    let mut n = 0;
    let mut hash = 0xcbf29ce484222325_u64;
    let t = Instant::now();
    let cut = std::env::args().nth(3).map(|n| Cut::Request(n.parse().unwrap()));
    let ended = World { guest: &guest, cut, stop: &|| false, seen: &mut |at, served, _| {
        n += 1;
        for x in [at.as_ns(), served.kind as u64, served.sector, served.bytes, served.done.as_ns()] { hash = (hash ^ x).wrapping_mul(0x100000001b3).rotate_left(17); }
        if let Ok(f) = std::env::var("TRACE") { use std::io::Write; writeln!(std::fs::File::options().append(true).create(true).open(f).unwrap(), "{} {:?} {} {} {}", at.as_ns(), served.kind, served.sector / 8, served.bytes / 4096, served.done.as_ns() - at.as_ns()).unwrap(); }
    } }.run(drive);
    match ended { Ok(e) => println!("end {} requests {} cut {}", e.at, e.requests, e.was_cut), Err(e) => println!("ERROR {e}") }
    let w = t.elapsed().as_secs_f64();
    println!("n {n} hash {hash:016x} wall {w:.3} us/request {:.1}", w * 1e6 / n as f64);
    for f in std::fs::read_dir(out.path()).unwrap() { let f = f.unwrap().path(); println!("--- {f:?}\n{}", std::fs::read_to_string(&f).unwrap().chars().take(3000).collect::<String>()); }
}
