//! Quantiles of durations by the histogram that `ringmark report --by` has: parts merge, so each thread and each file counts for
//! itself.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryBuilder, BooleanArray, Int64Array};
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
    match of.merge_bytes(bytes) {
        Some(()) => Ok(()),
        None => exec_err!("found {} bytes, expected durations", bytes.len()),
    }
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
        let mut bytes = Vec::new();
        self.of.bytes(&mut bytes);
        Ok(vec![ScalarValue::Binary(Some(bytes))])
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
        if filter.is_none() && durations.null_count() == 0 {
            let rows = groups.iter().zip(durations.values());
            rows.for_each(|(group, ns)| add(&mut self.of[*group], *ns));
            return Ok(());
        }
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
        let mut groups = emit_to.take_needed(&mut self.of);
        let (mut states, mut bytes) = (BinaryBuilder::new(), Vec::new());
        for of in &mut groups {
            bytes.clear();
            of.bytes(&mut bytes);
            states.append_value(&bytes);
        }
        Ok(vec![Arc::new(states.finish())])
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
        let (mut states, mut bytes) = (BinaryBuilder::new(), Vec::new());
        for row in 0..durations.len() {
            let mut of = Durations::new();
            if durations.is_valid(row) && counts(filter, row) {
                add(&mut of, durations.value(row));
            }
            bytes.clear();
            of.bytes(&mut bytes);
            states.append_value(&bytes);
        }
        Ok(vec![Arc::new(states.finish())])
    }

    fn size(&self) -> usize {
        self.of.iter().map(Durations::memory_bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::BinaryArray;

    use super::*;

    /// Groups with these rows, of which some have no duration, and some do not count.
    fn groups(of: &[(usize, i64)]) -> (Groups, [ArrayRef; 1], Vec<usize>, BooleanArray) {
        let durations = of.iter().map(|(_, ns)| (ns % 5 != 0).then_some(*ns));
        let durations: Int64Array = durations.collect();
        let filter = BooleanArray::from_iter(of.iter().map(|(_, ns)| Some(ns % 7 != 0)));
        let numbers = of.iter().map(|(group, _)| *group).collect();
        let none = Groups {
            part: 0.99,
            of: Vec::new(),
        };
        (none, [Arc::new(durations)], numbers, filter)
    }

    #[test]
    fn parts_give_what_the_whole_gives() {
        // Group 0 has a histogram, group 1 few durations, group 2 none.
        let rows = (1..4000_i64).map(|n| (usize::from(n % 41 == 0), n * n));
        let all: Vec<_> = rows.chain([(2, 5)]).collect();
        let (mut whole, durations, numbers, filter) = groups(&all);
        whole
            .update_batch(&durations, &numbers, Some(&filter), 3)
            .expect("durations");
        let expected = whole.state(EmitTo::All).expect("states");

        let (mut merged, ..) = groups(&[]);
        for (number, part) in all.chunks(900).enumerate() {
            let (mut one, durations, numbers, filter) = groups(part);
            let (states, of_states) = match number % 2 {
                0 => {
                    one.update_batch(&durations, &numbers, Some(&filter), 3)
                        .expect("durations");
                    (one.state(EmitTo::All), vec![0, 1, 2])
                }
                _ => (one.convert_to_state(&durations, Some(&filter)), numbers),
            };
            merged
                .merge_batch(&states.expect("states"), &of_states, 3)
                .expect("states");
        }
        assert_eq!(merged.state(EmitTo::All).expect("states"), expected);
        merged
            .merge_batch(&expected, &[0, 1, 2], 3)
            .expect("states");
        let answers = merged.evaluate(EmitTo::All).expect("answers");
        assert!(answers.is_valid(0) && answers.is_valid(1) && answers.is_null(2));
    }

    #[test]
    fn rows_that_all_count_are_as_those_that_a_filter_leaves() {
        let all: Vec<_> = (0..1000_i64).map(|n| (n as usize % 3, n * n)).collect();
        let durations = Int64Array::from_iter_values(all.iter().map(|of| of.1));
        let durations: [ArrayRef; 1] = [Arc::new(durations)];
        let yes = BooleanArray::from(vec![true; all.len()]);
        let states = [None, Some(&yes)].map(|filter| {
            let (mut of, _, numbers, _) = groups(&all);
            of.update_batch(&durations, &numbers, filter, 3)
                .expect("durations");
            of.state(EmitTo::All).expect("states")
        });
        assert_eq!(states[0], states[1]);
    }

    #[test]
    fn states_that_are_none_are_refused() {
        let (mut of, ..) = groups(&[]);
        let states: ArrayRef = Arc::new(BinaryArray::from_iter_values([b"durations"]));
        assert!(of.merge_batch(&[states], &[0], 1).is_err());
    }
}
