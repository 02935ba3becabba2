//! placeholder
use super::context::Context;
use seqgate_decide::ids::EntityId;
pub async fn run(_ctx: &Context, _id: &EntityId) -> anyhow::Result<()> {
    Ok(())
}
