//! A file with one CloudEvent a line, or standard input.
//!
//! The offset of a line is the position of its first byte. One thread reads and decodes; partitions get their lines by the
//! entity's hash, and lines that name no entity go to partition 0. A last line without its newline is an event only when
//! nobody can write to it any more: at the end of standard input, and under `--until-idle`.

mod identity;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use seqgate_decide::envelope::{Decoded, Directory, Limits};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::{Budget, Item, Queue, Record, Room, SourceError, decoded, partition_of};
use crate::clock::Clock;

pub use identity::{HEAD, Identity};

/// The longest line, in bytes. An event of the largest payload in base64, with its attributes, is far below.
const MAX_LINE: usize = 64 << 20;
/// How often a file is looked at again when its end was reached.
const POLL: Duration = Duration::from_millis(100);
/// And how soon after something was there; each look in vain doubles it.
const SOON: Duration = Duration::from_millis(2);

/// A file to read, or standard input.
pub struct Jsonl {
    /// The source's configured name.
    pub name: Arc<str>,
    /// The file; `None` is standard input.
    pub path: Option<PathBuf>,
    /// The machine of events that name none.
    pub machine: Option<Arc<str>>,
    /// How many partitions.
    pub partitions: u32,
    /// Wait for more at the end.
    pub follow: bool,
    /// Limits of envelopes.
    pub limits: Limits,
    /// Lines that a partition's queue holds.
    pub queue: usize,
}

impl Jsonl {
    /// Opens the file and starts reading.
    ///
    /// `starts` has the next offset of each partition; lines before it were decided and are passed over. Standard input
    /// continues behind the highest: its lines are new ones each time. `stored` is the file that these offsets are of; the
    /// identity that comes back is to be stored before anything is committed.
    ///
    /// # Errors
    /// The file cannot be read, is shorter than the offsets, or is another one.
    pub fn start(
        self,
        starts: &[u64],
        stored: Option<&Identity>,
        directory: Arc<dyn Directory + Send + Sync>,
        clock: Clock,
        stop: watch::Receiver<bool>,
    ) -> Result<Started, SourceError> {
        let furthest = starts.iter().copied().max().unwrap_or(0);
        let first = starts.iter().copied().min().unwrap_or(0);
        let (input, base, identity, within) = match &self.path {
            None => (Input::Stdin, furthest, None, false),
            Some(path) => {
                let mut file = File::open(path).map_err(|e| self.io(e))?;
                let identity = Identity::of(&mut file).map_err(|e| self.io(e))?;
                let length = file.metadata().map_err(|e| self.io(e))?.len();
                let same = stored.is_none_or(|s| (s.device, s.inode) == (identity.device, identity.inode));
                if same && length < furthest {
                    let what = shown(path);
                    return Err(SourceError::Truncated { name: self.name, what, length, stored: furthest });
                }
                if let Some(stored) = stored
                    && !identity::continues(stored, &identity, &mut file).map_err(|e| self.io(e))?
                {
                    return Err(SourceError::Replaced { name: self.name, what: shown(path), stored: furthest });
                }
                let within = within_a_line(&mut file, first).map_err(|e| self.io(e))?;
                file.seek(SeekFrom::Start(first)).map_err(|e| self.io(e))?;
                (Input::File(file), first, Some(identity), within)
            }
        };
        let (senders, queues) = (0..self.partitions).map(|_| mpsc::channel(self.queue.max(1))).unzip();
        let budgets = (0..self.partitions).map(|_| Budget::of(self.partitions)).collect();
        let opened = identity.as_ref().map(|i| (i.device, i.inode));
        let reader = Reader {
            senders,
            budgets,
            starts: starts.to_vec(),
            opened,
            at: base,
            within,
            directory,
            clock,
            stop,
            source: self,
        };
        let task = tokio::task::spawn_blocking(move || reader.run(input));
        Ok(Started { queues, identity, task })
    }

    fn io(&self, source: std::io::Error) -> SourceError {
        let what = self.path.as_deref().map_or_else(|| "standard input".into(), shown);
        SourceError::Io { name: self.name.clone(), what, source }
    }
}

/// A source that reads.
pub struct Started {
    /// A queue for each partition.
    pub queues: Vec<Queue>,
    /// Which file it is; `None` for standard input.
    pub identity: Option<Identity>,
    /// Ends when the source does.
    pub task: JoinHandle<Result<(), SourceError>>,
}

enum Input {
    Stdin,
    File(File),
}

struct Reader {
    source: Jsonl,
    senders: Vec<mpsc::Sender<Item>>,
    budgets: Vec<Budget>,
    starts: Vec<u64>,
    /// Device and inode of the file that was opened.
    opened: Option<(u64, u64)>,
    at: u64,
    /// `at` is no beginning of a line: an earlier run took a last line that had no newline yet.
    within: bool,
    directory: Arc<dyn Directory + Send + Sync>,
    clock: Clock,
    stop: watch::Receiver<bool>,
}

impl Reader {
    fn run(mut self, input: Input) -> Result<(), SourceError> {
        match input {
            Input::Stdin => self.read(&mut std::io::stdin().lock(), false),
            Input::File(file) => {
                let follow = self.source.follow;
                self.read(&mut BufReader::with_capacity(256 * 1024, file), follow)
            }
        }
    }

    /// Reads to the end, and in a file that may grow on from there, until it is told to stop.
    fn read(&mut self, input: &mut dyn BufRead, follow: bool) -> Result<(), SourceError> {
        let (mut line, mut pause) = (Vec::new(), SOON);
        loop {
            if *self.stop.borrow() {
                return Ok(());
            }
            let room = (MAX_LINE - line.len()) as u64;
            let n = (&mut *input).take(room).read_until(b'\n', &mut line).map_err(|e| self.source.io(e))?;
            if n > 0 {
                pause = SOON;
            }
            if line.ends_with(b"\n") {
                if std::mem::take(&mut self.within) && line.trim_ascii().is_empty() {
                    self.at += line.len() as u64;
                } else if !self.deliver(&line) {
                    return Ok(());
                }
                line.clear();
            } else if line.len() >= MAX_LINE {
                let (name, offset) = (self.source.name.clone(), self.at);
                return Err(SourceError::LineTooLong { name, offset, limit: MAX_LINE });
            } else if n == 0 {
                if !follow {
                    if !line.is_empty() && !self.deliver(&line) {
                        return Ok(());
                    }
                    self.reached(true);
                    return Ok(());
                }
                self.still_the_same(self.at + line.len() as u64)?;
                self.reached(false);
                std::thread::sleep(pause);
                pause = (pause * 2).min(POLL);
            }
        }
    }

    /// Decodes a line and hands it to its partition; `false` when nobody takes it any more.
    fn deliver(&mut self, line: &[u8]) -> bool {
        let offset = self.at;
        self.at += line.len() as u64;
        let bytes = line.strip_suffix(b"\n").unwrap_or(line);
        let machine = self.source.machine.as_deref();
        let (decoded, took) = decoded(bytes, self.clock.now(), machine, &*self.directory, &self.source.limits);
        let entity = match &decoded {
            Decoded::Event(event) => Some(&event.entity),
            Decoded::Malformed(malformed) => malformed.entity.as_ref(),
        };
        let partition = entity.map_or(0, |e| partition_of(e, self.source.partitions)) as usize;
        if offset < self.starts[partition] {
            return true;
        }
        let Some(room) = self.room(partition, bytes.len()) else { return false };
        let record = Record::new(offset, self.at, decoded, bytes, took, room);
        self.senders[partition].blocking_send(Item::Record(record)).is_ok()
    }

    /// Waits for room in a partition's queue; `None` when nobody takes it any more.
    fn room(&self, partition: usize, bytes: usize) -> Option<Room> {
        if let Some(room) = self.budgets[partition].try_take(bytes) {
            return Some(room);
        }
        let (budget, sender) = (&self.budgets[partition], &self.senders[partition]);
        tokio::runtime::Handle::current().block_on(async {
            tokio::select! {
                room = budget.take(bytes) => Some(room),
                () = sender.closed() => None,
            }
        })
    }

    /// Tells every partition that all of it was delivered. At the very end it waits for room; otherwise the next time does.
    fn reached(&self, last: bool) {
        let at = self.clock.now();
        for sender in &self.senders {
            let item = Item::Reached { next: self.at, at };
            // A queue that is full, or closed, has not come this far: nothing is lost by not telling it.
            let _ = if last { sender.blocking_send(item).map_err(drop) } else { sender.try_send(item).map_err(drop) };
        }
    }

    /// A file that grows keeps its inode and never gets shorter (R10).
    fn still_the_same(&self, read: u64) -> Result<(), SourceError> {
        let Some(path) = &self.source.path else { return Ok(()) };
        let now = std::fs::metadata(path).map_err(|e| self.source.io(e))?;
        let (name, what) = (self.source.name.clone(), shown(path));
        if now.len() < read {
            return Err(SourceError::Truncated { name, what, length: now.len(), stored: read });
        }
        if self.opened.is_some_and(|opened| opened != (now.dev(), now.ino())) {
            return Err(SourceError::Replaced { name, what, stored: read });
        }
        Ok(())
    }
}

/// Whether the byte before a position belongs to the same line.
fn within_a_line(file: &mut File, at: u64) -> std::io::Result<bool> {
    let Some(before) = at.checked_sub(1) else { return Ok(false) };
    let mut byte = [0];
    file.seek(SeekFrom::Start(before))?;
    file.read_exact(&mut byte)?;
    Ok(byte != *b"\n")
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
