//! What a component asks of the compiler, bounded before it is asked.
//!
//! Compiling cannot be interrupted, and its time does not follow the component's size: a local variable that changes in a
//! loop or behind a branch is merged at blocks, so 36 kB of nested loops took over a minute and 250 kB of branches over
//! 3.6 GB. The bounds are far above what an optimising compiler makes of honest rules: the four machines of this
//! repository have 200 kB, 420 functions and 240,000 merges each at the most. What passes them all compiles in well under
//! a minute on one processor.

use wasmparser::{BlockType, FunctionBody, Operator};

use super::error::Refused;

/// The most functions of one component.
pub const MAX_FUNCTIONS: usize = 10_000;
/// The most bytes of code in one function.
pub const MAX_FUNCTION: usize = 128 << 10;
/// The most local variables of one function, parameters included.
pub const MAX_LOCALS: usize = 5_000;
/// The deepest nesting of blocks.
pub const MAX_NESTING: usize = 1_000;
/// The most merges of one function: its local variables times its blocks, where a loop counts as 32 blocks.
pub const MAX_MERGES: usize = 500_000;
/// The most merges of all functions together, which is about what honest rules of the largest size have.
pub const MAX_ALL_MERGES: usize = 6_000_000;
/// A loop merges what its body changes once more for each way back.
const LOOP: usize = 32;

/// The module under way and what was counted so far.
#[derive(Default)]
pub(super) struct Work {
    /// Parameters, and parameters and results together, of each type.
    types: Vec<(usize, usize)>,
    /// The type of each function of the module that has a body.
    functions: Vec<u32>,
    bodies: usize,
    all_bodies: usize,
    merges: usize,
}

impl Work {
    /// Another module begins.
    pub(super) fn module(&mut self) {
        (self.types, self.functions, self.bodies) = (Vec::new(), Vec::new(), 0);
    }

    pub(super) fn types(
        &mut self,
        section: wasmparser::TypeSectionReader<'_>,
    ) -> Result<(), wasmparser::BinaryReaderError> {
        for function in section.into_iter_err_on_gc_types() {
            let function = function?;
            self.types.push((function.params().len(), function.params().len() + function.results().len()));
        }
        Ok(())
    }

    pub(super) fn functions(
        &mut self,
        section: wasmparser::FunctionSectionReader<'_>,
    ) -> Result<(), wasmparser::BinaryReaderError> {
        self.functions = section.into_iter().collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Counts a function, and refuses it where it is too much by itself or with those before it.
    pub(super) fn body(&mut self, body: &FunctionBody<'_>) -> Result<(), Refused> {
        let (own, index) = (self.functions.get(self.bodies).copied().unwrap_or_default(), self.all_bodies);
        self.bodies += 1;
        self.all_bodies += 1;
        check("functions", self.all_bodies, MAX_FUNCTIONS, index)?;
        check("bytes of code in one function", body.range().len(), MAX_FUNCTION, index)?;
        let invalid = |error: wasmparser::BinaryReaderError| Refused::Invalid { detail: error.to_string() };
        let mut locals = self.types.get(own as usize).map_or(0, |(params, _)| *params);
        for local in body.get_locals_reader().map_err(invalid)? {
            locals = locals.saturating_add(local.map_err(invalid)?.0 as usize);
        }
        check("locals in one function", locals, MAX_LOCALS, index)?;
        let (mut blocks, mut carried, mut depth) = (1, 0, 0_usize);
        for operator in body.get_operators_reader().map_err(invalid)? {
            match operator.map_err(invalid)? {
                Operator::Loop { blockty } => {
                    (blocks, carried, depth) = (blocks + LOOP, carried + self.carried(blockty), depth + 1)
                }
                Operator::Block { blockty }
                | Operator::If { blockty }
                | Operator::TryTable { try_table: wasmparser::TryTable { ty: blockty, .. } } => {
                    (blocks, carried, depth) = (blocks + 1, carried + self.carried(blockty), depth + 1);
                }
                Operator::Else | Operator::BrIf { .. } => blocks += 1,
                Operator::BrTable { targets } => blocks += targets.len() as usize,
                Operator::End => depth = depth.saturating_sub(1),
                _ => {}
            }
            check("levels of blocks in one function", depth, MAX_NESTING, index)?;
        }
        let merges = locals.saturating_mul(blocks).saturating_add(carried);
        check("merges of locals at blocks in one function", merges, MAX_MERGES, index)?;
        self.merges = self.merges.saturating_add(merges);
        check("merges of locals at blocks", self.merges, MAX_ALL_MERGES, index)
    }

    /// Values that a block takes and gives.
    fn carried(&self, block: BlockType) -> usize {
        match block {
            BlockType::FuncType(index) => self.types.get(index as usize).map_or(0, |(_, values)| *values),
            BlockType::Empty | BlockType::Type(_) => 1,
        }
    }
}

fn check(what: &'static str, count: usize, limit: usize, function: usize) -> Result<(), Refused> {
    if count > limit { Err(Refused::TooMuchCode { what, count, limit, function }) } else { Ok(()) }
}
