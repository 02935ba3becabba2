//! Pictures and words of a machine.

use super::super::graph;
use super::guest::description;

#[test]
fn dot_shows_states_and_edges() {
    assert_eq!(
        graph::dot(&description()),
        r#"digraph "things" {
  rankdir=LR;
  node [shape=box, style=rounded];
  "" [shape=point, label=""];
  "open" [label="open"];
  "shut" [label="shut", peripheries=2];
  "" -> "open" [label="thing.opened"];
  "open" -> "open" [label="thing.opened"];
  "open" -> "shut" [label="timer late", style=dashed];
  "shut" -> "shut" [label="compensation of thing.opened", style=dotted];
}
"#
    );
}

#[test]
fn mermaid_shows_states_and_edges() {
    assert_eq!(
        graph::mermaid(&description()),
        "stateDiagram-v2
    state \"open\" as s0
    state \"shut\" as s1
    [*] --> s0: thing.opened
    s0 --> s0: thing.opened
    s0 --> s1: timer late
    s1 --> s1: compensation of thing.opened
    s1 --> [*]
"
    );
}

#[test]
fn words_say_it_all() {
    assert_eq!(
        graph::words(&description()),
        "things 1.0.0, schema 2 (migrates from 1)

States
  open, expected to be left within 1 minutes
  shut (terminal)

Edges
  (new) → open: thing.opened
  open → open: thing.opened
  (any live state) → shut: timer late
  shut → shut: compensation of thing.opened
"
    );
}

#[test]
fn names_cannot_break_out_of_the_picture() {
    let mut description = description();
    for state in &mut description.states {
        state.name = format!("\"{};\\", state.name);
    }
    assert!(graph::dot(&description).contains(r#"  "\"open;\\" [label="\"open;\\"];"#));
    assert!(graph::mermaid(&description).contains(r##"state "#34;open#59;\" as s0"##));
}
