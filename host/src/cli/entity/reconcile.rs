//! `entity reconcile`: the entities here against an export of the system of record.

use std::collections::HashSet;
use std::path::PathBuf;

use clap::Args;
use seqgate_decide::decide::Import;
use seqgate_decide::digest;
use seqgate_decide::ids::EntityId;
use seqgate_decide::world::{Entity, Need, World};

use super::line::Lines;
use crate::cli::context::{Context, Site};
use crate::cli::failure::failed;
use crate::cli::output::{Object, plain};
use crate::cli::show;
use crate::runner::adopt::differences;
use crate::store::Wants;
use crate::store::views::{EntityFilter, Page};

/// How many entities are compared at a time.
const CHUNK: usize = 500;

/// Compare with another system's entities
#[derive(Args, Debug)]
pub struct Reconcile {
    /// The other system's entities, in the format of `entity import`; `-` is standard input
    #[arg(long = "with", value_name = "FILE")]
    file: PathBuf,
    /// The machine, where lines name none; its entities that the file does not have are listed too
    #[arg(long)]
    machine: Option<String>,
    /// List at most this many; all are counted
    #[arg(long, default_value_t = 1000)]
    limit: usize,
}

/// What was found.
#[derive(Default)]
struct Found {
    compared: u64,
    counts: [u64; KINDS.len()],
    listed: Vec<(EntityId, Kind, Vec<String>)>,
    bad: Vec<(u64, String)>,
}

/// Seen from the store here.
#[derive(Clone, Copy)]
enum Kind {
    Missing,
    Ahead,
    Behind,
    Different,
    Unlisted,
}

const KINDS: [(&str, &str); 5] = [
    ("missing", "the file has it, the store does not"),
    ("ahead", "the store is at a higher version"),
    ("behind", "the store is at a lower version"),
    ("different", "at the same version, with another state or other data"),
    ("unlisted", "the store has it, the file does not"),
];

impl Found {
    fn add(&mut self, limit: usize, id: EntityId, kind: Kind, what: Vec<String>) {
        self.counts[kind as usize] += 1;
        if self.listed.len() < limit {
            self.listed.push((id, kind, what));
        }
    }

    fn compare(&mut self, limit: usize, import: &Import, entity: Option<&Entity>) {
        self.compared += 1;
        let Some(entity) = entity.filter(|e| e.revision > 0) else {
            return self.add(limit, import.entity.clone(), Kind::Missing, Vec::new());
        };
        let what = differences(import, entity);
        let kind = match entity.version.cmp(&import.version) {
            _ if what.is_empty() => return,
            std::cmp::Ordering::Greater => Kind::Ahead,
            std::cmp::Ordering::Less => Kind::Behind,
            std::cmp::Ordering::Equal => Kind::Different,
        };
        self.add(limit, import.entity.clone(), kind, what);
    }

    fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    fn json(&self) -> Object {
        let one = |(id, kind, what): &(EntityId, Kind, Vec<String>)| {
            Object::new().and(show::entity_members(id)).put("what", KINDS[*kind as usize].0).put("differences", what)
        };
        let bad = |(line, why): &(u64, String)| Object::new().put("line", line).put("message", why);
        let mut object = Object::new().put("compared", self.compared);
        for ((name, _), n) in KINDS.iter().zip(self.counts) {
            object = object.put(name, n);
        }
        object
            .put("items", self.listed.iter().map(one).collect::<Vec<_>>())
            .put("bad", self.bad.iter().map(bad).collect::<Vec<_>>())
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (line, why) in &self.bad {
            text.push_str(&format!("line {line}: {}\n", plain(why)));
        }
        for (id, kind, what) in &self.listed {
            let (name, means) = KINDS[*kind as usize];
            let what = if what.is_empty() { means.to_owned() } else { what.join("; ") };
            text.push_str(&format!("{name:<9} {}: {}\n", show::entity(id), plain(&what)));
        }
        let counts: Vec<String> = KINDS.iter().zip(self.counts).map(|((name, _), n)| format!("{n} {name}")).collect();
        text + &format!("{} compared: {}\n", self.compared, counts.join(", "))
    }
}

impl Reconcile {
    /// Runs the command.
    pub async fn run(self, ctx: &Context) -> anyhow::Result<()> {
        let site = ctx.open().await?;
        let mut lines = Lines::open(&site, &self.file, self.machine.clone())?;
        let (mut found, mut named) = (Found::default(), HashSet::new());
        loop {
            let chunk = lines.chunk(CHUNK)?;
            if chunk.is_empty() {
                break;
            }
            let mut imports = Vec::new();
            for (line, read) in chunk {
                match read {
                    Ok(import) => imports.push(import),
                    Err(why) => found.bad.push((line, why)),
                }
            }
            let wants: Wants = imports.iter().map(|i| Need::Entity(i.entity.clone())).collect();
            let mut world = World::new();
            site.store.load(&wants, &mut world).await?;
            for import in &imports {
                named.insert(short(&import.entity));
                found.compare(self.limit, import, world.get(&import.entity));
            }
        }
        if let Some(machine) = &self.machine {
            self.unlisted(&site, machine, &named, &mut found).await?;
        }
        ctx.answer(|| found.json(), || found.text())?;
        if found.total() > 0 || !found.bad.is_empty() {
            let message = format!("{} differences, {} unreadable lines", found.total(), found.bad.len());
            return Err(failed("differences", message));
        }
        Ok(())
    }

    /// The machine's entities that the file does not have.
    async fn unlisted(
        &self,
        site: &Site,
        machine: &str,
        named: &HashSet<u128>,
        found: &mut Found,
    ) -> anyhow::Result<()> {
        let filter = EntityFilter { machine: Some(machine.into()), ..EntityFilter::default() };
        let mut page = Page::first(1000);
        loop {
            let listing = site.store.entities(&filter, &page).await?;
            for entity in listing.items.into_iter().filter(|e| e.revision > 0 && !named.contains(&short(&e.id))) {
                found.add(self.limit, entity.id, Kind::Unlisted, Vec::new());
            }
            let Some(next) = listing.next else { return Ok(()) };
            page = Page::after(1000, next);
        }
    }
}

/// An address in 16 bytes: what is kept of each line, so that a million entities take some 30 MB.
fn short(id: &EntityId) -> u128 {
    let digest = digest::of_bytes(&[id.machine.as_bytes(), &[0], &*id.key].concat());
    let mut first = [0; 16];
    first.copy_from_slice(&digest.0[..16]);
    u128::from_be_bytes(first)
}
