//! A headless Chromium, driven by the DevTools protocol over a pair of pipes: messages are JSON, each ends with a zero byte.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Names under which Chromium is installed.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
const FLAGS: [&str; 13] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--hide-scrollbars",
    "--mute-audio",
    "--remote-debugging-pipe",
];
/// How long the browser may take for anything; a loaded machine is slow.
const PATIENCE: Duration = Duration::from_secs(400);

/// A browser with one page.
pub(crate) struct Browser {
    child: Child,
    commands: ChildStdin,
    messages: Receiver<Value>,
    session: Option<String>,
    last: u64,
    /// Events that came so far.
    events: Vec<Value>,
    folder: tempfile::TempDir,
}

/// The path of Chromium; `None` where it is not installed.
fn program() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let mut files = std::env::split_paths(&folders).flat_map(|folder| NAMES.map(|name| folder.join(name)));
    files.find(|file| file.is_file())
}

impl Browser {
    /// Starts a browser with an empty page of a size; `None`, with a sentence, where no Chromium is installed.
    #[allow(clippy::print_stdout)]
    pub(crate) fn start([width, height]: [u32; 2]) -> Option<Browser> {
        let Some(program) = program() else {
            println!("skipped: there is no chromium on the PATH");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        // The browser reads commands from descriptor 3 and writes to descriptor 4.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null", "sh"])
            .arg(program)
            .args(FLAGS)
            .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let commands = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            while output.read_until(0, &mut bytes).is_ok_and(|count| count > 0) {
                bytes.pop();
                let message = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
                if sender.send(message).is_err() {
                    return;
                }
                bytes.clear();
            }
        });
        let mut browser = Browser { child, commands, messages, session: None, last: 0, events: Vec::new(), folder };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network", "DOM"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser.resize([width, height], false);
        Some(browser)
    }

    /// Sends a command and returns its result.
    pub(crate) fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method });
        message["params"] = parameters;
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = serde_json::to_vec(&message).unwrap();
        bytes.push(0);
        self.commands.write_all(&bytes).unwrap();
        loop {
            let answer = self.messages.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("{method}: {error}"));
            if answer["id"] == self.last {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }

    /// The value of a script, after its promise where it is one.
    pub(crate) fn evaluate(&mut self, script: &str) -> Value {
        let given = json!({ "expression": script, "awaitPromise": true, "returnByValue": true, "userGesture": true });
        let answer = self.call("Runtime.evaluate", given);
        let failure = &answer["exceptionDetails"];
        assert!(failure.is_null(), "{script}: {failure}");
        answer["result"]["value"].clone()
    }

    /// The value of a script, once it is neither null nor false nor empty.
    pub(crate) fn wait(&mut self, script: &str) -> Value {
        let started = Instant::now();
        loop {
            let value = self.evaluate(script);
            if ![Value::Null, json!(false), json!("")].contains(&value) {
                return value;
            }
            if started.elapsed() > PATIENCE {
                let page = self.evaluate("document.body.innerText");
                panic!(
                    "waited for {script}\nthe page says:\n{}\nconsole: {:?}",
                    page.as_str().unwrap_or(""),
                    self.complaints()
                );
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Goes to an address.
    pub(crate) fn open(&mut self, address: &str) {
        self.call("Page.navigate", json!({ "url": address }));
        self.wait("document.readyState === 'complete'");
    }

    /// The size of the page, in pixels of CSS.
    pub(crate) fn resize(&mut self, [width, height]: [u32; 2], phone: bool) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": if phone { 2 } else { 1 }, "mobile": phone });
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// `light` or `dark`, as the user prefers.
    pub(crate) fn prefer(&mut self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// Where an element is: left, top, width, height.
    pub(crate) fn place(&mut self, selector: &str) -> [f64; 4] {
        let found = self.evaluate(&format!(
            "(() => {{ const element = document.querySelector({selector:?}); element.scrollIntoView({{ block: 'center' }}); \
             const box = element.getBoundingClientRect(); return [box.left, box.top, box.width, box.height]; }})()"
        ));
        std::array::from_fn(|side| found[side].as_f64().unwrap())
    }

    /// Presses the mouse at a place, moves it to others, and lets it go.
    pub(crate) fn drag(&mut self, places: &[[f64; 2]]) {
        let last = places.len() - 1;
        let mut event = |kind: &str, [x, y]: [f64; 2]| {
            let event = json!({ "type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", event);
        };
        event("mousePressed", places[0]);
        places.iter().for_each(|&place| event("mouseMoved", place));
        event("mouseReleased", places[last]);
    }

    /// Clicks on the middle of an element.
    pub(crate) fn click(&mut self, selector: &str) {
        let [left, top, width, height] = self.place(selector);
        self.drag(&[[left + width / 2.0, top + height / 2.0]]);
    }

    /// Presses and releases a key; its code is needed for keys that do not write.
    pub(crate) fn press(&mut self, key: &str, modifiers: u32) {
        self.down(key, modifiers);
        self.up(key);
    }

    /// Presses a key.
    pub(crate) fn down(&mut self, key: &str, modifiers: u32) {
        let (code, text) = match key {
            "Tab" => (9, None),
            "Enter" => (13, Some("\r")),
            "ArrowLeft" => (37, None),
            "ArrowUp" => (38, None),
            "ArrowRight" => (39, None),
            "ArrowDown" => (40, None),
            " " => (32, Some(" ")),
            other => (other.bytes().next().map_or(0, |byte| u32::from(byte.to_ascii_uppercase())), Some(other)),
        };
        let kind = if text.is_some() { "keyDown" } else { "rawKeyDown" };
        let mut event = json!({ "type": kind, "key": key, "windowsVirtualKeyCode": code, "modifiers": modifiers });
        if let Some(text) = text {
            event["text"] = json!(text);
        }
        self.call("Input.dispatchKeyEvent", event);
    }

    /// Releases a key.
    pub(crate) fn up(&mut self, key: &str) {
        self.call("Input.dispatchKeyEvent", json!({ "type": "keyUp", "key": key }));
    }

    /// Chooses a file in a field for files.
    pub(crate) fn choose(&mut self, selector: &str, file: &Path) {
        let root = self.call("DOM.getDocument", json!({}))["root"]["nodeId"].clone();
        let node = self.call("DOM.querySelector", json!({ "nodeId": root, "selector": selector }))["nodeId"].clone();
        self.call("DOM.setFileInputFiles", json!({ "nodeId": node, "files": [file] }));
    }

    /// A folder of its own for files.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The bytes of the file that a click on an element downloads.
    pub(crate) fn download(&mut self, selector: &str, name: &str) -> Vec<u8> {
        let folder = self.folder.path().join("downloads");
        let session = self.session.take(); // the behaviour is that of the whole browser
        self.call("Browser.setDownloadBehavior", json!({ "behavior": "allow", "downloadPath": folder }));
        self.session = session;
        let file = folder.join(name);
        let _ = std::fs::remove_file(&file);
        self.click(selector);
        let started = Instant::now();
        while !file.is_file() {
            assert!(started.elapsed() < PATIENCE, "no file {}", file.display());
            std::thread::sleep(Duration::from_millis(50));
        }
        std::fs::read(file).unwrap()
    }

    /// Errors and warnings of the console, and exceptions.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let text = |event: &Value| match event["method"].as_str()? {
            "Runtime.exceptionThrown" => Some(event["params"]["exceptionDetails"].to_string()),
            "Runtime.consoleAPICalled" => Some(event["params"]["args"].to_string()),
            "Log.entryAdded" => Some(event["params"]["entry"]["text"].to_string()),
            _ => None,
        };
        self.events.iter().filter_map(text).collect()
    }

    /// The addresses that the page asked for, except those inside of it.
    pub(crate) fn requests(&self) -> Vec<String> {
        let sent = self.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        let addresses = sent.filter_map(|event| event["params"]["request"]["url"].as_str());
        addresses.filter(|url| !url.starts_with("blob:") && !url.starts_with("data:")).map(str::to_owned).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
