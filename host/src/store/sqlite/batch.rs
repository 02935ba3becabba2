//! Many rows in one statement.
//!
//! A statement takes its rows as `(VALUES …)`, whose length is rounded up to a power of two: a few prepared statements
//! serve every batch. What is left over is NULL (SQLite's value of a parameter without one), and costs next to nothing;
//! every template leaves such rows out, by a first column that is never NULL.

use std::sync::{Arc, OnceLock};

use seqgate_decide::ids::Digest;
use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{Arguments as _, AssertSqlSafe};

use super::codec::ordered;

/// SQLite's limit of parameters in a statement.
const MAX_PARAMETERS: usize = 32_766;
/// More rows than this are further statements. Prepared statements grow with it.
const MAX_ROWS: usize = 1024;
const SIZES: usize = MAX_ROWS.ilog2() as usize + 1;

/// A statement over rows.
pub(super) struct Template {
    columns: usize,
    before: &'static [&'static str],
    after: &'static str,
    sized: [OnceLock<Arc<str>>; SIZES],
}

impl Template {
    /// `before (VALUES …) after`, rows of so many columns, which SQLite names `column1` and so on.
    pub(super) const fn new(columns: usize, before: &'static [&'static str], after: &'static str) -> Self {
        Self { columns, before, after, sized: [const { OnceLock::new() }; SIZES] }
    }

    /// The most rows of one statement.
    fn most(&self) -> usize {
        let fit = MAX_PARAMETERS / self.columns;
        MAX_ROWS.min(1 << fit.ilog2())
    }

    /// The text for so many rows.
    pub(super) fn sql(&self, rows: usize) -> Arc<str> {
        let size = rows.next_power_of_two();
        self.sized[size.ilog2() as usize].get_or_init(|| self.text(size)).clone()
    }

    fn text(&self, size: usize) -> Arc<str> {
        let row = format!("({})", vec!["?"; self.columns].join(","));
        let mut text = self.before.concat();
        text.push_str("(VALUES ");
        text.push_str(&vec![row; size].join(","));
        text.push(')');
        text.push_str(self.after);
        text.into()
    }
}

/// Rows for a template, one after the other. Every row writes each column once, in order.
#[derive(Clone, Default)]
pub(super) struct Rows {
    columns: usize,
    most: usize,
    written: usize,
    full: Vec<SqliteArguments>,
    open: SqliteArguments,
    refused: Option<String>,
}

impl Rows {
    /// No rows yet.
    pub(super) fn of(template: &Template) -> Self {
        Self { columns: template.columns, most: template.most(), ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.full.is_empty() && self.written == 0
    }

    /// What cannot be stored at all.
    pub(super) fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// The same rows for a template of the same width.
    fn statements(self, template: &Template) -> impl Iterator<Item = (Arc<str>, SqliteArguments)> + use<'_> {
        debug_assert_eq!(self.columns, template.columns, "rows of another template");
        debug_assert_eq!(self.written % self.columns.max(1), 0, "a row is not whole");
        let (rows, open) = (self.written / self.columns.max(1), self.open);
        let last = (rows > 0).then_some((rows, open));
        let most = self.most;
        let full = self.full.into_iter().map(move |arguments| (most, arguments));
        full.chain(last).map(|(rows, arguments)| (template.sql(rows), arguments))
    }

    fn push<'t, T: sqlx::Encode<'t, sqlx::Sqlite> + sqlx::Type<sqlx::Sqlite>>(&mut self, value: T) -> &mut Self {
        if self.written == self.most * self.columns {
            self.full.push(std::mem::take(&mut self.open));
            self.written = 0;
        }
        if let Err(e) = self.open.add(value) {
            self.refused = Some(e.to_string());
        }
        self.written += 1;
        self
    }

    pub(super) fn nulls(&mut self, n: usize) -> &mut Self {
        for _ in 0..n {
            self.push(None::<i64>);
        }
        self
    }

    pub(super) fn int(&mut self, value: i64) -> &mut Self {
        self.push(value)
    }

    pub(super) fn int_opt(&mut self, value: Option<i64>) -> &mut Self {
        self.push(value)
    }

    /// A number of things; more than SQLite can count are refused.
    pub(super) fn count(&mut self, value: u64) -> &mut Self {
        match i64::try_from(value) {
            Ok(value) => self.push(value),
            Err(_) => {
                self.refused = Some(format!("{value} is more than can be counted"));
                self.nulls(1)
            }
        }
    }

    pub(super) fn count_opt(&mut self, value: Option<u64>) -> &mut Self {
        match value {
            Some(value) => self.count(value),
            None => self.nulls(1),
        }
    }

    /// A number of the whole range.
    pub(super) fn whole(&mut self, value: u64) -> &mut Self {
        self.push(ordered(value))
    }

    pub(super) fn whole_opt(&mut self, value: Option<u64>) -> &mut Self {
        self.push(value.map(ordered))
    }

    pub(super) fn name(&mut self, value: &Arc<str>) -> &mut Self {
        self.push(value.clone())
    }

    pub(super) fn name_opt(&mut self, value: Option<&Arc<str>>) -> &mut Self {
        self.push(value.cloned())
    }

    pub(super) fn text(&mut self, value: impl Into<String>) -> &mut Self {
        self.push(value.into())
    }

    pub(super) fn text_opt(&mut self, value: Option<impl Into<String>>) -> &mut Self {
        self.push(value.map(Into::into))
    }

    pub(super) fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.push(value.to_vec())
    }

    pub(super) fn bytes_opt(&mut self, value: Option<&[u8]>) -> &mut Self {
        self.push(value.map(<[u8]>::to_vec))
    }

    pub(super) fn digest(&mut self, value: &Digest) -> &mut Self {
        self.push(value.0.to_vec())
    }

    pub(super) fn digest_opt(&mut self, value: Option<&Digest>) -> &mut Self {
        self.push(value.map(|d| d.0.to_vec()))
    }

    /// JSON text, or NULL for an empty value.
    pub(super) fn json(&mut self, value: &impl serde::Serialize, empty: bool) -> &mut Self {
        if empty {
            return self.nulls(1);
        }
        match serde_json::to_string(value) {
            Ok(text) => self.push(text),
            Err(e) => {
                self.refused = Some(e.to_string());
                self.nulls(1)
            }
        }
    }
}

/// Runs a template over rows that change something; gives how many rows changed and how many statements that took.
pub(super) async fn execute(
    conn: &mut SqliteConnection,
    template: &Template,
    rows: Rows,
) -> Result<(u64, u64), sqlx::Error> {
    let (mut changed, mut statements) = (0, 0);
    for (sql, arguments) in rows.statements(template) {
        changed += sqlx::query_with(AssertSqlSafe(sql), arguments).execute(&mut *conn).await?.rows_affected();
        statements += 1;
    }
    Ok((changed, statements))
}

/// Runs a template over keys that selects something; gives the rows and how many statements that took.
pub(super) async fn select(
    conn: &mut SqliteConnection,
    template: &Template,
    keys: Rows,
) -> Result<(Vec<SqliteRow>, u64), sqlx::Error> {
    let (mut found, mut statements) = (Vec::new(), 0);
    for (sql, arguments) in keys.statements(template) {
        found.append(&mut sqlx::query_with(AssertSqlSafe(sql), arguments).fetch_all(&mut *conn).await?);
        statements += 1;
    }
    Ok((found, statements))
}
