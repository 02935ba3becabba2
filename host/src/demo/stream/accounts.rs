//! Accounts, with balances that need every digit.

use rand::RngExt as _;
use rand::rngs::StdRng;
use seqgate_decide::verdict::Verdict;

use super::event::text;
use super::story::{Data, Story};

/// An account that others may depend on.
#[derive(Clone, Debug)]
pub struct Known {
    /// Its key.
    pub key: String,
    /// A version that it certainly reaches; at least 1.
    pub reaches: u64,
    /// A version that it never reaches.
    pub never: u64,
}

/// An account, with what its bank believes of it.
pub struct Account {
    /// Its life.
    pub story: Story,
    balance: u128,
    currency: &'static str,
    /// The largest movement.
    most: u128,
}

impl Account {
    /// An account that was just opened.
    pub fn open(key: String, currency: &'static str, most: u128, begin: i64) -> Self {
        let mut story = Story::new("accounts", key, begin);
        story.apply("account.opened", vec![("currency", text(currency))], "open");
        let mut account = Self { story, balance: 0, currency, most };
        account.figure();
        account
    }

    /// A movement's payload.
    pub fn movement(&self, amount: u128) -> Data {
        vec![("amount", amount.to_string()), ("currency", text(self.currency))]
    }

    /// Money that comes.
    pub fn credit(&mut self, amount: u128) {
        self.story.apply("account.credited", self.movement(amount), "open");
        if !self.story.stopped() {
            self.balance += amount;
        }
        self.figure();
    }

    /// Money that goes; the caller has seen to it that it is there.
    pub fn debit(&mut self, amount: u128) {
        self.story.apply("account.debited", self.movement(amount), "open");
        if !self.story.stopped() {
            self.balance -= amount;
        }
        self.figure();
    }

    /// One more than there is.
    pub fn overdraw(&mut self) {
        self.story.refused("account.debited", self.movement(self.balance + 1), Verdict::Illegal);
    }

    /// Who may rely on what of it.
    pub fn known(&self) -> Option<Known> {
        let (_, key) = self.story.address();
        let reaches = self.story.end.version;
        (reaches > 0).then_some(Known { key, reaches, never: reaches + 1_000 })
    }

    fn figure(&mut self) {
        self.story.end.figure = Some(("balance", self.balance.to_string()));
    }

    fn turn(&mut self, rng: &mut StdRng) {
        let chance = rng.random_range(0..1000);
        let amount = rng.random_range(1..=self.most);
        match chance {
            0..40 => self.freeze(rng),
            40..52 => self.overdraw(),
            52..58 => {
                let dollars = vec![("amount", "100".to_owned()), ("currency", text("USD"))];
                self.story.refused("account.credited", dollars, Verdict::Illegal);
            }
            58..68 => {
                let broken = vec![("amount", "1.5e3".to_owned()), ("currency", text(self.currency))];
                self.story.refused("account.credited", broken, Verdict::Malformed);
            }
            68..82 => self.story.lost("account.credited"),
            82..150 => self.story.ignored("account.viewed", Vec::new()),
            _ if rng.random_bool(0.6) || self.balance == 0 => self.credit(amount),
            _ => self.debit(amount.min(self.balance)),
        }
    }

    fn freeze(&mut self, rng: &mut StdRng) {
        self.story.apply("account.frozen", Vec::new(), "frozen");
        if rng.random_bool(0.1) {
            self.story.refused("account.credited", self.movement(1), Verdict::Illegal);
        }
        if rng.random_bool(0.8) {
            self.story.apply("account.unfrozen", Vec::new(), "open");
        } else {
            self.story.refused("account.debited", self.movement(1), Verdict::Illegal);
        }
    }

    fn close(&mut self, rng: &mut StdRng) {
        if self.balance > 0 && rng.random_bool(0.8) {
            self.debit(self.balance);
        }
        if self.balance == 0 {
            self.story.apply("account.closed", Vec::new(), "closed");
        } else {
            self.story.refused("account.closed", Vec::new(), Verdict::Illegal);
        }
    }
}

/// An account's life.
pub fn account(key: String, rng: &mut StdRng) -> Account {
    // In cents; or in a currency whose smallest unit makes amounts of 30 digits.
    let (currency, most) = if rng.random_bool(0.2) { ("ETH", 1 << 100) } else { ("EUR", 1_000_000) };
    let mut account = Account::open(key, currency, most, rng.random_range(0..86_400));
    for _ in 0..rng.random_range(2..12) {
        account.turn(rng);
    }
    if rng.random_bool(0.2) {
        account.close(rng);
    }
    account
}
