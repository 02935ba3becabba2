//! A seeded stream of events with everything that goes wrong between systems, and the truth about it.
//!
//! Lives of entities are written first, in the order of their versions ([`story`], and a file per machine), each with what
//! must become of it; [`delivery`] then does to them what networks do. Only lines of one entity have an order among
//! themselves, so lives are mixed at random. What one life needs of another (a payment that depends on an account) holds
//! from some version on for ever: which of the two is delivered first does not matter, and neither does the partition.
//!
//! - [`truth`]: what must come out; [`showcase`]: a life for each verdict, told as an example; [`broken`]: lines that are
//!   no events

pub mod accounts;
pub mod broken;
pub mod delivery;
pub mod event;
pub mod orders;
pub mod sensors;
pub mod showcase;
pub mod story;
pub mod subscriptions;
pub mod truth;

use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};

use accounts::Known;
use story::Story;
use truth::{Example, Life, Line, Truth};

/// The fewest events: what the examples need.
pub const FEWEST: usize = 200;

/// How many lives are under way at a time.
const WINDOW: usize = 400;

/// A stream, with the truth about it.
#[derive(Debug)]
pub struct Stream {
    /// The deliveries, in their order.
    pub lines: Vec<Line>,
    /// What they must come to.
    pub truth: Truth,
    /// One for each verdict.
    pub examples: Vec<Example>,
}

impl Stream {
    /// The file.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.lines.iter().map(|line| line.text.len() + 1).sum());
        for line in &self.lines {
            bytes.extend_from_slice(line.text.as_bytes());
            bytes.push(b'\n');
        }
        bytes
    }
}

/// A stream of exactly `events` lines, at least [`FEWEST`]. The same for the same seed, wherever it is made.
pub fn generate(events: usize, seed: u64) -> Stream {
    let events = events.max(FEWEST);
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut lives, examples) = showcase::all();
    let mut left = events.saturating_sub(lives.iter().map(|life| life.lines.len()).sum());
    let mut writer = Writer::default();
    while left > 0 {
        let (life, account) = writer.life(&mut rng);
        // The last lives may be too long for what is left: then it is orders that were only just made.
        let life = if life.lines.len() <= left {
            writer.accounts.extend(account);
            life
        } else {
            writer.new_order()
        };
        left -= life.lines.len();
        lives.push(life);
    }
    lives.shuffle(&mut rng);
    let mut truth = Truth::default();
    lives.iter().for_each(|life| truth.add(life));
    Stream { lines: mix(lives, &mut rng), truth, examples }
}

/// Writes lives, and remembers what later ones may depend on.
#[derive(Default)]
struct Writer {
    made: usize,
    /// Accounts whose lives are in the stream.
    accounts: Vec<Known>,
}

impl Writer {
    /// A life; and the account, where it is one.
    fn life(&mut self, rng: &mut StdRng) -> (Life, Option<Known>) {
        self.made += 1;
        let n = self.made;
        let life = match rng.random_range(0..100) {
            0..40 => delivery::roughly(orders::order(key("order", n), &self.accounts, rng), rng),
            40..62 => delivery::roughly(subscriptions::subscription(key("sub", n), rng), rng),
            62..84 => {
                let account = accounts::account(key("account", n), rng);
                let known = account.known();
                return (delivery::roughly(account.story, rng), known);
            }
            84..99 => sensors::sensor(key("sensor", n), rng),
            _ => broken::line(n, rng),
        };
        (life, None)
    }

    fn new_order(&mut self) -> Life {
        self.made += 1;
        let mut story = Story::new("orders", key("order", self.made), 0);
        story.apply("order.created", orders::money("total", "1999"), "pending");
        delivery::plainly(story)
    }
}

fn key(kind: &str, n: usize) -> String {
    format!("{kind}-{n}")
}

fn mix(lives: Vec<Life>, rng: &mut StdRng) -> Vec<Line> {
    let mut lines = Vec::with_capacity(lives.iter().map(|life| life.lines.len()).sum());
    let mut waiting = lives.into_iter().map(|life| life.lines.into_iter());
    let mut open: Vec<_> = waiting.by_ref().take(WINDOW).collect();
    while !open.is_empty() {
        let at = rng.random_range(0..open.len());
        match open[at].next() {
            Some(line) => lines.push(line),
            None => match waiting.next() {
                Some(next) => open[at] = next,
                None => drop(open.swap_remove(at)),
            },
        }
    }
    lines
}
