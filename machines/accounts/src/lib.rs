//! Accounts: a balance in one currency that never goes below nothing.
//!
//! Codes: `wrong-state`, `frozen`, `currency-differs`, `insufficient-funds`, `balance-overflow`, `not-empty`, and the
//! SDK's `unknown-type` and `bad-data`.

use seqgate_guest::prelude::*;

seqgate_guest::table! {
    /// The rules of an account.
    pub machine Accounts "accounts", schema 1;

    states {
        Open   "open";
        Frozen "frozen";
        Closed "closed" terminal;
    }
    events {
        Opened(NewAccount) "account.opened":   absent => Open;
        Credited(Movement) "account.credited": Open => Open;
        Debited(Movement)  "account.debited":  Open => Open;
        Frozen             "account.frozen":   Open => Frozen;
        Unfrozen           "account.unfrozen": Frozen => Open;
        Closed             "account.closed":   Open => Closed;
    }
}

seqgate_guest::export!(Accounts);
seqgate_guest::scenario_tests!(Accounts);

/// What is kept about an account.
#[derive(Debug, Serialize, Deserialize)]
pub struct Account {
    currency: Text,
    balance: Balance,
}

/// `account.opened`.
#[derive(Debug, Deserialize)]
pub struct NewAccount {
    currency: Text,
}

/// `account.credited` and `account.debited`.
#[derive(Debug, Deserialize)]
pub struct Movement {
    amount: Amount,
    currency: Text,
}

impl Machine for Accounts {
    type Data = Account;

    fn apply(account: Option<Account>, event: Event, cx: &Context<Self>) -> Answer<Self> {
        match (account, event) {
            (None, Event::Opened(NewAccount { currency })) => {
                Ok(cx.to(State::Open, Account { currency, balance: Balance::ZERO }))
            }
            (Some(account), Event::Credited(Movement { amount, currency })) => {
                same_currency(&account, &currency)?;
                let Some(balance) = account.balance.checked_add(amount) else {
                    let text = format_args!("{amount} more than {} is too much to count", account.balance);
                    return Err(Refusal::illegal("balance-overflow", text));
                };
                Ok(cx.to(State::Open, Account { balance, ..account }))
            }
            (Some(account), Event::Debited(Movement { amount, currency })) => {
                same_currency(&account, &currency)?;
                let Some(balance) = account.balance.checked_sub(amount) else {
                    let text = format_args!("{amount} from a balance of {}", account.balance);
                    return Err(Refusal::illegal("insufficient-funds", text));
                };
                Ok(cx.to(State::Open, Account { balance, ..account }))
            }
            (Some(account), Event::Frozen) => Ok(cx.to(State::Frozen, account)),
            (Some(account), Event::Unfrozen) => Ok(cx.to(State::Open, account)),
            (Some(account), Event::Closed) => {
                ensure!(account.balance.is_zero(), "not-empty", "{} are still there", account.balance);
                Ok(cx.to(State::Closed, account))
            }
            _ => Err(cx.wrong_state()),
        }
    }

    fn wrong_state(event: &Event, cx: &Context<Self>) -> Refusal {
        match (cx.state(), event) {
            (Some(State::Frozen), Event::Credited(_) | Event::Debited(_)) => {
                Refusal::illegal("frozen", "nothing moves while the account is frozen")
            }
            _ => cx.wrong_state(),
        }
    }
}

fn same_currency(account: &Account, currency: &Text) -> Result<(), Refusal> {
    ensure!(*currency == account.currency, "currency-differs", "{currency} in an account in {}", account.currency);
    Ok(())
}
