//! A module for each guarantee that no other module is about (docs/concepts/guarantees.md). G2, G11: `kills`; G3, G8:
//! `sources`; G9: `rules_in_force`; all of them over random histories: `histories`.

mod fenced;
mod gate;
mod isolated;
mod nothing_silent;
mod ordered_effects;
mod sandbox;

use crate::program::{Site, batch, events, machine};
use crate::stream::Stream;

/// A site that has decided a stream, in small batches of three partitions.
fn decided(stream: &Stream) -> Site {
    let machines = ["orders", "subscriptions", "accounts"].map(|m| machine(m, ""));
    let site = Site::new(&(batch(32) + &machines.concat() + &events(3)));
    site.write(&stream.lines);
    site.run();
    site
}
