//! Quantiles of durations by the histogram that `ringmark scan p99` has: parts merge, so each thread and each file counts for
//! itself.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BinaryBuilder, BooleanArray, Int64Array,
};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility,
};
use datafusion::physical_expr::expressions::Literal;
use ringmark_decoder::Durations;

/// The functions: `p50`, `p90` and `p99` of durations, and `quantile` of durations and a part.
pub(crate) fn functions() -> Vec<AggregateUDF> {
    let fixed = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)];
    let fixed = fixed.map(|(name, part)| Quantile::new(name, Some(part)));
    let all = fixed.into_iter().chain([Quantile::new("quantile", None)]);
    all.map(AggregateUDF::from).collect()
}

/// A function.
#[derive(Debug, Clone)]
struct Quantile {
    name: &'static str,
    /// `None`: the second argument says it.
    part: Option<f64>,
    signature: Signature,
}

impl PartialEq for Quantile {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Quantile {}

impl Hash for Quantile {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl Quantile {
    fn new(name: &'static str, part: Option<f64>) -> Self {
        let mut arguments = vec![DataType::Int64];
        arguments.extend(part.is_none().then_some(DataType::Float64));
        Self {
            name,
            part,
            signature: Signature::exact(arguments, Volatility::Immutable),
        }
    }

    fn part(&self, arguments: &AccumulatorArgs<'_>) -> Result<f64> {
        if arguments.is_distinct {
            return plan_err!("{}: found DISTINCT, expected all durations", self.name);
        }
        if let Some(part) = self.part {
            return Ok(part);
        }
        let literal = arguments
            .exprs
            .get(1)
            .and_then(|expr| expr.downcast_ref::<Literal>());
        match literal.map(Literal::value) {
            Some(ScalarValue::Float64(Some(part))) if (0.0..=1.0).contains(part) => Ok(*part),
            _ => plan_err!("quantile: expected a number from 0 to 1 as the second argument"),
        }
    }
}

impl AggregateUDFImpl for Quantile {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let name = format!("{}[durations]", arguments.name);
        Ok(vec![Arc::new(Field::new(name, DataType::Binary, true))])
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(One {
            part: self.part(&arguments)?,
            of: Durations::new(),
        }))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Groups {
            part: self.part(&arguments)?,
            of: Vec::new(),
        }))
    }
}

/// The quantile; `None`: there are no durations.
fn answer(of: &Durations, part: f64) -> Option<i64> {
    let ns = (of.count() > 0).then(|| of.quantile_ns(part))?;
    Some(i64::try_from(ns).unwrap_or(i64::MAX))
}

fn add(of: &mut Durations, ns: i64) {
    of.add(u64::try_from(ns).unwrap_or(0));
}

fn merge(of: &mut Durations, bytes: &[u8]) -> Result<()> {
    let Some(part) = Durations::of_bytes(bytes) else {
        return exec_err!("found {} bytes, expected durations", bytes.len());
    };
    of.merge(&part);
    Ok(())
}

fn bytes(of: &Durations) -> Vec<u8> {
    let mut bytes = Vec::new();
    of.bytes(&mut bytes);
    bytes
}

/// One group.
#[derive(Debug)]
struct One {
    part: f64,
    of: Durations,
}

impl Accumulator for One {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let durations = values[0].as_primitive::<Int64Type>().iter().flatten();
        durations.for_each(|ns| add(&mut self.of, ns));
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Int64(answer(&self.of, self.part)))
    }

    fn size(&self) -> usize {
        self.of.memory_bytes()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::Binary(Some(bytes(&self.of)))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let mut states = states[0].as_binary::<i32>().iter().flatten();
        states.try_for_each(|bytes| merge(&mut self.of, bytes))
    }
}

/// Many groups.
struct Groups {
    part: f64,
    of: Vec<Durations>,
}

impl Groups {
    /// Makes room for groups, and returns each value with its group.
    fn grow(&mut self, groups: usize) {
        if self.of.len() < groups {
            self.of.resize_with(groups, Durations::new);
        }
    }
}

/// Whether a row counts.
fn counts(filter: Option<&BooleanArray>, row: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
}

impl GroupsAccumulator for Groups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.grow(total);
        let durations = values[0].as_primitive::<Int64Type>();
        for (row, group) in groups.iter().enumerate() {
            if durations.is_valid(row) && counts(filter, row) {
                add(&mut self.of[*group], durations.value(row));
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let groups = emit_to.take_needed(&mut self.of);
        let answers = groups.iter().map(|of| answer(of, self.part));
        Ok(Arc::new(answers.collect::<Int64Array>()))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let groups = emit_to.take_needed(&mut self.of);
        let states = BinaryArray::from_iter_values(groups.iter().map(bytes));
        Ok(vec![Arc::new(states)])
    }

    fn merge_batch(&mut self, values: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.grow(total);
        let states = values[0].as_binary::<i32>();
        for (row, group) in groups.iter().enumerate() {
            if states.is_valid(row) {
                merge(&mut self.of[*group], states.value(row))?;
            }
        }
        Ok(())
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let durations = values[0].as_primitive::<Int64Type>();
        let mut states = BinaryBuilder::new();
        for row in 0..durations.len() {
            let mut of = Durations::new();
            if durations.is_valid(row) && counts(filter, row) {
                add(&mut of, durations.value(row));
            }
            states.append_value(bytes(&of));
        }
        Ok(vec![Arc::new(states.finish())])
    }

    fn size(&self) -> usize {
        self.of.iter().map(Durations::memory_bytes).sum()
    }
}
