//! Looking at a file without touching it.

use sqlx::{ConnectOptions as _, Connection as _};

use super::failures::failed;
use super::open::{APPLICATION_ID, newest, parse};
use crate::store::{Probe, Result, StoreError};

/// What is there. Read-only: no migration, no journal mode, no file that stays.
pub(crate) async fn probe(url: &str) -> Result<Probe> {
    let options = parse(url)?;
    match std::fs::metadata(options.get_filename()) {
        Ok(file) if file.len() > 0 => {}
        Ok(_) => return Ok(Probe::Missing),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Probe::Missing),
        Err(error) => return Err(StoreError::Io(error.into())),
    }
    let mut conn = options.create_if_missing(false).read_only(true).connect().await.map_err(failed)?;
    let id: i64 = sqlx::query_scalar("SELECT application_id FROM pragma_application_id")
        .fetch_one(&mut conn)
        .await
        .map_err(failed)?;
    if id != APPLICATION_ID {
        return Err(StoreError::Foreign);
    }
    let found: i64 = sqlx::query_scalar("SELECT coalesce(max(version), 0) FROM _sqlx_migrations")
        .fetch_one(&mut conn)
        .await
        .map_err(failed)?;
    conn.close().await.map_err(failed)?;
    let known = newest();
    match found {
        found if found > known => Err(StoreError::Newer { found, known }),
        found if found < known => Ok(Probe::Older { found, known }),
        _ => Ok(Probe::Ready),
    }
}
