//! A headless Chromium, told what to do through its DevTools protocol on two pipes.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Messages come at file descriptor 3 and go out at 4: those that a shell can set.
const SHELL: &str = r#"exec 3<&0 4>&1 >/dev/null 2>&1; exec chromium "$@""#;

/// A browser with one page.
pub(crate) struct Browser {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    session: Option<String>,
    asked: u64,
    /// Everything that it told by itself.
    events: Vec<Value>,
    _profile: TempDir,
}

impl Browser {
    pub(crate) fn start() -> Self {
        let profile = tempfile::tempdir().unwrap();
        let mut child = Command::new("sh")
            .args(["-c", SHELL, "chromium", "--headless", "--no-sandbox", "--disable-gpu"])
            .args(["--no-first-run", "--disable-sync", "--disable-background-networking"])
            .args(["--disable-component-update", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let output = BufReader::new(output);
        let (session, asked, events) = (None, 0, Vec::new());
        let mut browser = Self { child, input, output, session, asked, events, _profile: profile };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.call("Target.attachToTarget", attach);
        browser.session = Some(attached["sessionId"].as_str().unwrap().into());
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Opens a file in a window of that width.
    pub(crate) fn open(&mut self, page: &Path, width: u32, is_dark: bool) {
        let scheme = if is_dark { "dark" } else { "light" };
        let metrics =
            json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", media);
        self.call("Page.navigate", json!({ "url": format!("file://{}", page.display()) }));
        self.wait_for("document.readyState === 'complete' && typeof playground === 'object'");
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.asked += 1;
        let mut message = json!({ "id": self.asked, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        write!(self.input, "{message}\0").unwrap();
        loop {
            let mut bytes = Vec::new();
            self.output.read_until(0, &mut bytes).unwrap();
            assert!(
                bytes.pop().is_some(),
                "chromium does not answer: cargo xtask test installs it, or apt-get install chromium; \
                 DOVETAIL_WITHOUT=chromium leaves out this referee"
            );
            let told: Value = serde_json::from_slice(&bytes).unwrap();
            if told["id"] == json!(self.asked) {
                assert!(told["error"].is_null(), "{method}: {}", told["error"]);
                return told["result"].clone();
            }
            self.events.push(told);
        }
    }

    /// The value of an expression, or of the promise that it is.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let asked =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let told = self.call("Runtime.evaluate", asked);
        assert!(told["exceptionDetails"].is_null(), "{expression}: {told}");
        told["result"]["value"].clone()
    }

    /// Waits until an expression is true, five minutes at most.
    pub(crate) fn wait_for(&mut self, expression: &str) {
        let pause = "new Promise(done => setTimeout(done, 100))";
        for _ in 0..3000 {
            if self.value(expression) == json!(true) {
                return;
            }
            self.value(pause);
        }
        panic!("it is never true that {expression}");
    }

    /// Complaints of the page: exceptions, the log, the console.
    pub(crate) fn complaints(&self) -> Vec<&Value> {
        let kinds = ["Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"];
        self.told(&kinds)
    }

    /// The addresses that the page asked for.
    pub(crate) fn requests(&self) -> Vec<&str> {
        let requests = self.told(&["Network.requestWillBeSent"]);
        requests
            .into_iter()
            .map(|event| event["params"]["request"]["url"].as_str().unwrap())
            .collect()
    }

    fn told(&self, kinds: &[&str]) -> Vec<&Value> {
        let is_one = |event: &&Value| kinds.iter().any(|kind| event["method"] == *kind);
        self.events.iter().filter(is_one).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // it ends itself and its helpers when its pipes end; the one that was started is reaped
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
