//! {{Machine}}: opened, commented on, closed; overdue when nothing happens for two weeks.
//!
//! Codes: `wrong-state`, `too-many-comments`, and the SDK's `unknown-type` and `bad-data`.

use seqgate_guest::prelude::*;

seqgate_guest::table! {
    /// The rules of {{machine}}.
    pub machine {{Machine}} "{{machine}}", schema 1;

    states {
        Open    "open"    within 30 days;
        Overdue "overdue" within 60 days;
        Closed  "closed"  terminal;
    }
    events {
        Opened(Opened)     "{{noun}}.opened":    absent => Open;
        Commented(Comment) "{{noun}}.commented": Open => Open, Overdue => Open;
        Closed             "{{noun}}.closed":    live => Closed;
    }
    timers {
        Due "due": Open => Overdue;
    }
}

seqgate_guest::export!({{Machine}});
seqgate_guest::scenario_tests!({{Machine}});

/// What is kept, as JSON.
#[derive(Debug, Serialize, Deserialize)]
pub struct Kept {
    owner: Text,
    comments: u32,
}

/// The payload of `{{noun}}.opened`. Members that it does not name are passed over.
#[derive(Debug, Deserialize)]
pub struct Opened {
    owner: Text,
}

/// The payload of `{{noun}}.commented`.
#[derive(Debug, Deserialize)]
pub struct Comment {
    text: Text,
}

/// What is sent when nothing happened for too long.
#[derive(Debug, Serialize)]
struct Reminder<'a> {
    owner: &'a Text,
}

/// The most comments that one may get.
const MOST_COMMENTS: u32 = 3;

impl Machine for {{Machine}} {
    type Data = Kept;

    fn apply(kept: Option<Kept>, event: Event, cx: &Context<Self>) -> Answer<Self> {
        match (kept, event) {
            (None, Event::Opened(Opened { owner })) => {
                let kept = Kept { owner, comments: 0 };
                Ok(cx.to(State::Open, kept).start(Timer::Due, after(days(14))))
            }
            (Some(kept), Event::Commented(Comment { text })) => {
                ensure!(kept.comments < MOST_COMMENTS, "too-many-comments", "it has {} already", kept.comments);
                note!(cx, "comment: {text}");
                let kept = Kept { comments: kept.comments + 1, ..kept };
                Ok(cx.to(State::Open, kept).start(Timer::Due, after(days(14))))
            }
            (Some(kept), Event::Closed) => Ok(cx.to(State::Closed, kept)),
            _ => Err(cx.wrong_state()),
        }
    }

    fn fire(kept: Kept, timer: Timer, cx: &Context<Self>) -> Answer<Self> {
        match timer {
            Timer::Due => {
                let reminder = Message::json("reminders", "reminder.requested", &Reminder { owner: &kept.owner });
                Ok(cx.to(State::Overdue, kept).send(reminder))
            }
        }
    }
}
