//! `cargo xtask record-tpcc TRACE [--no-doublewrite]`: TPC-C on MariaDB, recorded while the database
//! grows. It makes a database of five warehouses first; then sixteen clients work on it, and
//! another session adds warehouses one after another.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::Recorder;
use crate::{install, run};

const PACKAGES: [(&str, &str); 1] = [("mariadb-server", "mariadbd")];
const SQL: &str = include_str!("tpcc.sql");

const CLIENTS: u32 = 16;
const TRANSACTIONS_PER_CLIENT: u32 = 1500;
/// Warehouses of which the database is made.
const FIRST: u32 = 5;
/// Warehouses that it has at the end.
const LAST: u32 = 7;
/// Orders between two warehouses that are added.
const ORDERS_PER_WAREHOUSE: u32 = 5000;

/// Starts and durations are rounded to this, which saves a third of the compressed trace. CPU
/// times are not.
const CLOCK_US: u64 = 1000;

/// Options beside those of the folder. Flush method and page size are those of MySQL 5.7; the pool
/// is a tenth of the database. Asynchronous I/O would go past the recorder.
const OPTIONS: [&str; 15] = [
    "--no-defaults",
    "--user=root",
    "--skip-networking",
    "--skip-log-bin",
    "--performance-schema=0",
    "--innodb-flush-method=fsync",
    "--innodb-use-native-aio=0",
    "--innodb-page-size=16k",
    "--innodb-buffer-pool-size=64M",
    "--innodb-log-file-size=16M",
    "--innodb-temp-data-file-path=ibtmp1:4M:autoextend",
    "--innodb-stats-persistent=0",
    "--innodb-buffer-pool-dump-at-shutdown=0",
    "--innodb-buffer-pool-load-at-startup=0",
    "--innodb-file-per-table=1",
];

/// A server that runs; it is ended if it is dropped before it was stopped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A database server and its folder.
struct Database {
    folder: PathBuf,
}

impl Database {
    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn make(folder: PathBuf) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(failed)?;
        }
        fs::create_dir_all(&folder).map_err(failed)?;
        let folder = folder.canonicalize().map_err(failed)?;
        let database = Self { folder };
        let mut make = Command::new("mariadb-install-db");
        make.args(["--no-defaults", "--user=root", "--skip-test-db"])
            .arg("--auth-root-authentication-method=normal")
            .arg(option("datadir", &database.data()))
            .stdout(Stdio::null());
        run(&mut make)?;
        Ok(database)
    }

    fn server(&self, options: &[&str]) -> Command {
        let mut command = Command::new("mariadbd");
        command
            .args(OPTIONS)
            .args(options)
            .arg(option("datadir", &self.data()))
            .arg(option("socket", &self.folder.join("socket")))
            .arg(option("pid-file", &self.folder.join("pid")))
            .arg(option("tmpdir", &self.folder))
            .arg(option("log-error", &self.folder.join("errors.log")));
        command
    }

    fn client(&self, statement: &str) -> Command {
        let mut command = Command::new("mariadb");
        command.args(["--no-defaults", "--user=root"]);
        command.arg(option("socket", &self.folder.join("socket"))).arg("-e").arg(statement);
        command
    }

    /// Starts the server, and waits until it answers.
    fn start(&self, server: &mut Command) -> Result<Server, String> {
        let mut server = Server(server.spawn().map_err(|error| format!("mariadbd: {error}"))?);
        for _ in 0..600 {
            if server.0.try_wait().is_ok_and(|ended| ended.is_some()) {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
            let mut ask = self.client("SELECT 1");
            let answer = ask.stdout(Stdio::null()).stderr(Stdio::null()).status();
            if answer.is_ok_and(|status| status.success()) {
                return Ok(server);
            }
        }
        Err(format!("mariadbd does not answer: see {}", self.folder.display()))
    }

    fn stop(&self, mut server: Server) -> Result<(), String> {
        run(&mut self.client("SHUTDOWN"))?;
        server.0.wait().map(drop).map_err(|error| error.to_string())
    }

    fn load(&self) -> Result<(), String> {
        let server = self.start(&mut self.server(&["--innodb-flush-log-at-trx-commit=0"]))?;
        run(&mut self.client("CREATE DATABASE tpcc"))?;
        let sql = self.folder.join("tpcc.sql");
        fs::write(&sql, SQL).map_err(|error| error.to_string())?;
        // SOURCE is a command of the client's, which stands on a line of its own
        run(&mut self.client(&format!("USE tpcc\nSOURCE {}", sql.display())))?;
        run(&mut self.client("CALL tpcc.load_items()"))?;
        for warehouse in 1..=FIRST {
            run(&mut self.client(&format!("CALL tpcc.load_warehouse({warehouse})")))?;
        }
        self.stop(server)
    }

    /// Clients work, and the database grows meanwhile.
    fn work(&self) -> Result<(), String> {
        let client = format!("CALL tpcc.client({TRANSACTIONS_PER_CLIENT})");
        let growth = format!("CALL tpcc.grow({}, {LAST}, {ORDERS_PER_WAREHOUSE})", FIRST + 1);
        let statements = (0..CLIENTS).map(|_| client.as_str()).chain([growth.as_str()]);
        let sessions: Result<Vec<_>, _> =
            statements.map(|statement| self.client(statement).spawn()).collect();
        for mut session in sessions.map_err(|error| error.to_string())? {
            let status = session.wait().map_err(|error| error.to_string())?;
            if !status.success() {
                return Err("a client failed".into());
            }
        }
        run(&mut self.client("SELECT tpcc.orders_made()"))
    }
}

fn option(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}

pub(crate) fn record_tpcc(arguments: &[String]) -> Result<(), String> {
    let (trace, options): (_, &[&str]) = match arguments {
        [trace] => (trace, &[]),
        [trace, option] if option == "--no-doublewrite" => (trace, &["--innodb-doublewrite=0"]),
        _ => return Err("give TRACE, and --no-doublewrite if there is to be none".into()),
    };
    install(&PACKAGES)?;
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/record-tpcc");
    let database = Database::make(place)?;
    database.load()?;
    let recorder = Recorder::new(&database.data())?;
    let server = database.start(recorder.record(&mut database.server(options)))?;
    database.work()?;
    database.stop(server)?;
    recorder.write(Path::new(trace), CLOCK_US)
}
