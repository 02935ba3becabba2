//! What goes to standard output: JSON that keeps every digit, and tables for people.

use std::borrow::Cow;
use std::fmt;
use std::io::{IsTerminal as _, Write as _};

use serde::{Serialize, Serializer, ser::SerializeMap as _};
use serde_json::value::{RawValue, to_raw_value};

/// A JSON object whose members keep their order, and whose values may be raw.
#[derive(Clone, Debug, Default)]
pub struct Object(Vec<(&'static str, Box<RawValue>)>);

impl Object {
    /// Without members.
    pub fn new() -> Self {
        Self::default()
    }

    /// With one more member.
    pub fn put(mut self, name: &'static str, value: impl Serialize) -> Self {
        // Only maps with keys that are no text, and failing impls, cannot be written; we have neither.
        let value = to_raw_value(&value).unwrap_or_else(|_| RawValue::NULL.to_owned());
        self.0.push((name, value));
        self
    }

    /// With another object's members.
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

/// Writes a text to standard output, with a newline where it has none. A reader that went away (`| head`) is no error.
pub fn print(text: impl fmt::Display) -> anyhow::Result<()> {
    let mut text = text.to_string();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// A text without anything that a terminal would take for a command.
pub fn plain(text: &str) -> Cow<'_, str> {
    if !text.chars().any(char::is_control) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().fold(String::new(), |mut out, c| {
        if c.is_control() {
            out.extend(c.escape_default())
        } else {
            out.push(c)
        }
        out
    }))
}

/// Rows under a head, aligned.
#[derive(Clone, Debug)]
pub struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(head: &[&'static str]) -> Self {
        Self { head: head.to_vec(), rows: Vec::new() }
    }

    /// Adds a row with a cell for each column.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.head.len());
        self.rows.push(cells);
    }

    /// The text; lines longer than `width` are cut, and end in `…`.
    pub fn render(&self, width: Option<usize>) -> String {
        let head = self.head.iter().map(|h| (*h).to_owned()).collect();
        let rows = self.rows.iter().map(|row| row.iter().map(|cell| plain(cell).into_owned()).collect());
        let lines: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
        let widths: Vec<usize> = (0..self.head.len())
            .map(|column| lines.iter().filter_map(|l| l.get(column)).map(|c| c.chars().count()).max().unwrap_or(0))
            .collect();
        let mut out = String::new();
        for cells in lines {
            let mut line = String::new();
            for (cell, width) in cells.iter().zip(&widths) {
                line.push_str(cell);
                line.extend(std::iter::repeat_n(' ', width - cell.chars().count() + 2));
            }
            out.push_str(&cut(line.trim_end(), width));
            out.push('\n');
        }
        out
    }
}

fn cut(line: &str, width: Option<usize>) -> Cow<'_, str> {
    match width {
        Some(width) if line.chars().count() > width => {
            Cow::Owned(line.chars().take(width.saturating_sub(1)).chain(['…']).collect())
        }
        _ => Cow::Borrowed(line),
    }
}

/// How wide lines may be: the terminal's width, or without bound where there is none.
pub fn width() -> Option<usize> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    terminal_size::terminal_size().map(|(width, _)| usize::from(width.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_cut() {
        let mut table = Table::new(&["KEY", "STATE"]);
        table.row(vec!["o1".into(), "pending".into()]);
        table.row(vec!["größer\u{1b}".into(), "paid".into()]);
        let whole = "KEY           STATE\no1            pending\ngrößer\\u{1b}  paid\n";
        assert_eq!(table.render(None), whole);
        assert_eq!(table.render(Some(8)), "KEY    …\no1     …\ngrößer\\…\n");
    }

    #[test]
    fn members_keep_their_order_and_digits() {
        let raw = RawValue::from_string("123456789012345678901234567890.10".to_owned()).ok();
        let object = Object::new().put("z", raw).put("a", None::<u8>).and(Object::new().put("m", [1, 2]));
        assert_eq!(object.to_string(), r#"{"z":123456789012345678901234567890.10,"a":null,"m":[1,2]}"#);
    }
}
