//! R1: bytes in, an event or a reason out.

pub mod depends;

/// U+0000–001F and U+007F–009F.
pub(crate) fn is_control(c: char) -> bool {
    matches!(c, '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}')
}

/// A text from outside, short enough for a message and without control characters.
pub(crate) fn shown(text: &str) -> String {
    const MOST: usize = 80;
    let mut out: String = text.chars().take(MOST).map(|c| if is_control(c) { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(MOST).is_some() {
        out.push('…');
    }
    out
}
