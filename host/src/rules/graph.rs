//! A machine's description as a picture and in words.

use std::collections::BTreeMap;
use std::fmt::Write;

use seqgate_decide::rules::{Description, Edge, Origin, Trigger};

/// The graph for Graphviz. States are boxes, terminal ones doubled; timers dashed, compensations dotted; edges between
/// the same two states share one arrow. The same description gives the same text.
pub fn dot(description: &Description) -> String {
    let mut out =
        format!("digraph {} {{\n  rankdir=LR;\n  node [shape=box, style=rounded];\n", quoted(&description.name));
    out.push_str("  \"\" [shape=point, label=\"\"];\n");
    for state in &description.states {
        let peripheries = if state.terminal { ", peripheries=2" } else { "" };
        line(&mut out, format_args!("  {0} [label={0}{peripheries}];", quoted(&state.name)));
    }
    for ((from, to, kind), labels) in arrows(description) {
        let style = ["", ", style=dashed", ", style=dotted"][kind as usize];
        // `\n` inside a quoted label is Graphviz's own line break.
        let label = labels.iter().map(|label| escaped(label)).collect::<Vec<_>>().join("\\n");
        line(&mut out, format_args!("  {} -> {} [label=\"{label}\"{style}];", quoted(&from), quoted(&to)));
    }
    out.push_str("}\n");
    out
}

/// The graph as a Mermaid state diagram.
pub fn mermaid(description: &Description) -> String {
    let mut out = String::from("stateDiagram-v2\n");
    // Mermaid's identifiers are words; the names are labels.
    let ids: BTreeMap<&str, String> =
        description.states.iter().enumerate().map(|(n, state)| (state.name.as_str(), format!("s{n}"))).collect();
    let id = |name: &str| ids.get(name).map_or("[*]", String::as_str);
    for state in &description.states {
        line(&mut out, format_args!("    state \"{}\" as {}", plain(&state.name), id(&state.name)));
    }
    for ((from, to, _), labels) in arrows(description) {
        let labels = labels.iter().map(|label| plain(label)).collect::<Vec<_>>().join(", ");
        line(&mut out, format_args!("    {} --> {}: {labels}", id(&from), id(&to)));
    }
    for state in description.states.iter().filter(|state| state.terminal) {
        line(&mut out, format_args!("    {} --> [*]", id(&state.name)));
    }
    out
}

/// The description in words, a line each: what the machine is, its states, what leads from where to where.
pub fn words(description: &Description) -> String {
    let Description { name, version, schema, reads, states, edges } = description;
    let mut out = format!("{name} {version}, schema {schema}");
    if !reads.is_empty() {
        let reads: Vec<_> = reads.iter().map(ToString::to_string).collect();
        let _ = write!(out, " (migrates from {})", reads.join(", "));
    }
    out.push_str("\n\nStates\n");
    for state in states {
        let mut line_ = format!("  {}", state.name);
        if state.terminal {
            line_.push_str(" (terminal)");
        }
        if let Some(within) = state.expected_within {
            let _ = write!(line_, ", expected to be left within {}", duration(within));
        }
        if !reachable(description, &state.name) {
            line_.push_str(", which no edge leads to");
        }
        line(&mut out, format_args!("{line_}"));
    }
    out.push_str("\nEdges\n");
    for edge in edges {
        line(&mut out, format_args!("  {} → {}: {}", origin(&edge.origin), edge.target, label(&edge.trigger)));
    }
    out
}

/// Arrows by their ends and kind (0 event, 1 timer, 2 compensation), with all labels. `any-live` is drawn from every
/// live state; "" is where entities come from.
fn arrows(description: &Description) -> BTreeMap<(String, String, u8), Vec<String>> {
    let mut arrows: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for edge in &description.edges {
        let kind = match edge.trigger {
            Trigger::Event(_) => 0,
            Trigger::Timer(_) => 1,
            Trigger::Compensation(_) => 2,
        };
        for from in origins(description, edge) {
            let labels = arrows.entry((from, edge.target.clone(), kind)).or_default();
            let label = label(&edge.trigger);
            if !labels.contains(&label) {
                labels.push(label);
            }
        }
    }
    arrows
}

fn origins(description: &Description, edge: &Edge) -> Vec<String> {
    match &edge.origin {
        Origin::Absent => vec![String::new()],
        Origin::State(name) => vec![name.clone()],
        Origin::AnyLive => {
            description.states.iter().filter(|state| !state.terminal).map(|state| state.name.clone()).collect()
        }
    }
}

fn reachable(description: &Description, state: &str) -> bool {
    let elsewhere = |edge: &Edge| edge.origin != Origin::State(state.to_owned());
    description.edges.iter().any(|edge| edge.target == state && elsewhere(edge))
}

fn origin(origin: &Origin) -> &str {
    match origin {
        Origin::Absent => "(new)",
        Origin::AnyLive => "(any live state)",
        Origin::State(name) => name,
    }
}

fn label(trigger: &Trigger) -> String {
    match trigger {
        Trigger::Event(name) => name.clone(),
        Trigger::Timer(name) => format!("timer {name}"),
        Trigger::Compensation(name) => format!("compensation of {name}"),
    }
}

/// Milliseconds in the largest unit that divides them.
fn duration(milliseconds: u64) -> String {
    for (unit, size) in [("days", 86_400_000), ("hours", 3_600_000), ("minutes", 60_000), ("seconds", 1_000)] {
        if milliseconds >= size && milliseconds.is_multiple_of(size) {
            return format!("{} {unit}", milliseconds / size);
        }
    }
    format!("{milliseconds} ms")
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a String does not fail.
    let _ = writeln!(out, "{text}");
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text))
}

/// Mermaid has no escape inside a label but its own entities.
fn plain(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '"' | ':' | ';' | '#' | '<' | '>' | '{' | '}' | '[' | ']' => format!("#{};", c as u32),
            c => c.to_string(),
        })
        .collect()
}
