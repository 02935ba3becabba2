//! The program under test, as users run it: a process of its own, seen from outside.

use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How to start it.
#[derive(Clone, Debug)]
pub struct Program {
    /// The executable.
    pub path: PathBuf,
    /// What comes before its own arguments.
    pub arguments: Vec<OsString>,
}

/// What a process used, as the kernel counts; 0 where there is no `/proc`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// User and system time.
    pub cpu: Duration,
    /// The most resident memory, in bytes.
    pub peak_rss: u64,
}

/// How often a process is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// The unit of times in `/proc` (`USER_HZ`).
const TICK: Duration = Duration::from_millis(10);

/// A process that runs.
pub struct Running {
    child: Child,
    usage: Usage,
}

impl Program {
    /// Starts it on a configuration.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&self, config: &Path, arguments: &[&str]) -> anyhow::Result<Running> {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments).arg("--config").arg(config).args(arguments);
        // What the environment sets is meant for another configuration, and another database.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"SEQGATE_")) {
            command.env_remove(name);
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn()?;
        Ok(Running { child, usage: Usage::default() })
    }

    /// Runs it to its end, and gives what it printed.
    ///
    /// # Errors
    /// It cannot be started, or did not end well.
    pub fn run(&self, config: &Path, arguments: &[&str]) -> anyhow::Result<(String, Usage)> {
        self.start(config, arguments)?.finish()
    }
}

impl Running {
    /// Whether it goes on; takes its figures, which are gone with it.
    pub fn look(&mut self) -> bool {
        let pid = self.child.id();
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
            return matches!(self.child.try_wait(), Ok(None));
        };
        // Behind the name, which may hold anything but is closed by the last parenthesis: state, …, utime, stime.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|f| f.parse::<u32>().ok()).unwrap_or_default();
        self.usage.cpu = TICK * (ticks(11) + ticks(12));
        if fields.first() == Some(&"Z") {
            return false;
        }
        if let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) {
            let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
            let kib: Option<u64> = line.and_then(|l| l.trim().trim_end_matches(" kB").parse().ok());
            self.usage.peak_rss = self.usage.peak_rss.max(kib.unwrap_or_default() << 10);
        }
        true
    }

    /// Asks it to stop, as a service manager does.
    ///
    /// # Errors
    /// It cannot be told.
    pub fn terminate(&mut self) -> anyhow::Result<()> {
        let pid = self.child.id().to_string();
        anyhow::ensure!(Command::new("kill").args(["-TERM", &pid]).status()?.success(), "cannot stop process {pid}");
        Ok(())
    }

    /// Waits for its end, and gives what it printed.
    ///
    /// # Errors
    /// It did not end well.
    pub fn finish(mut self) -> anyhow::Result<(String, Usage)> {
        while self.look() {
            std::thread::sleep(LOOK);
        }
        let status = self.child.wait()?;
        let mut printed = String::new();
        if let Some(mut out) = self.child.stdout.take() {
            out.read_to_string(&mut printed)?;
        }
        anyhow::ensure!(status.success(), "the program ended with {status}; what it says is above");
        Ok((printed, self.usage))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Only where the measurement failed: otherwise it has ended.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
