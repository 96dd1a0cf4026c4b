//! What WHERE says of times, hosts, services and names, so that other files, segments and rows are not read. Whatever else
//! it says, DataFusion checks in the rows.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use ringmark_fleet::Wanted;

/// The rows that may pass these conditions, all of which must hold. `is_spans`: they end later than they began.
pub(crate) fn wanted(conditions: &[Expr], is_spans: bool) -> Wanted {
    let mut wanted = Wanted::default();
    for condition in conditions {
        take(condition, is_spans, &mut wanted);
    }
    wanted
}

fn take(condition: &Expr, is_spans: bool, wanted: &mut Wanted) {
    if let Expr::BinaryExpr(BinaryExpr { left, op, right }) = condition {
        if *op == Operator::And {
            take(left, is_spans, wanted);
            return take(right, is_spans, wanted);
        }
        if let Some((op, ns)) = bound(left, *op, right) {
            return take_time(op, ns, is_spans, wanted);
        }
    }
    let Some((column, values)) = one_of(condition) else {
        return;
    };
    match column {
        "host" => wanted.choice.hosts = values,
        "service" => wanted.choice.services = values,
        // A pattern with two colons is one of a target and a name.
        "name" if !values.iter().any(|name| name.contains("::")) => wanted.names = values,
        _ => {}
    }
}

/// A bound of `ts_ns`: the comparison with the column on its left.
fn bound(left: &Expr, op: Operator, right: &Expr) -> Option<(Operator, u64)> {
    let is_time = |expr: &Expr| matches!(expr, Expr::Column(column) if column.name == "ts_ns");
    let number = |expr: &Expr| match expr {
        Expr::Literal(ScalarValue::Int64(Some(ns)), _) => Some(u64::try_from(*ns).unwrap_or(0)),
        _ => None,
    };
    match (is_time(left), is_time(right)) {
        (true, false) => Some((op, number(right)?)),
        (false, true) => Some((op.swap()?, number(left)?)),
        _ => None,
    }
}

fn take_time(op: Operator, ns: u64, is_spans: bool, wanted: &mut Wanted) {
    let is_from = matches!(op, Operator::Gt | Operator::GtEq | Operator::Eq);
    let is_to = matches!(op, Operator::Lt | Operator::LtEq | Operator::Eq);
    if is_from {
        wanted.from_ns = Some(wanted.from_ns.map_or(ns, |from| from.max(ns)));
    }
    if is_to {
        let end = ns.saturating_add(1);
        wanted.to_ns = Some(wanted.to_ns.map_or(end, |to| to.min(end)));
        // Where a span ends, this does not say.
        wanted.is_to_of_starts = is_spans;
    }
}

/// The column that must be one of some texts.
fn one_of(condition: &Expr) -> Option<(&str, Vec<String>)> {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::Eq => {
                let (column, value) = match (&**left, &**right) {
                    (Expr::Column(column), value) | (value, Expr::Column(column)) => {
                        (column, value)
                    }
                    _ => return None,
                };
                Some((&column.name, vec![text(value)?]))
            }
            Operator::Or => {
                let ((column, mut values), (other, more)) = (one_of(left)?, one_of(right)?);
                values.extend(more);
                (column == other).then_some((column, values))
            }
            _ => None,
        },
        Expr::InList(InList {
            expr,
            list,
            negated: false,
        }) => {
            let Expr::Column(column) = &**expr else {
                return None;
            };
            let values: Option<Vec<_>> = list.iter().map(text).collect();
            Some((&column.name, values.filter(|values| !values.is_empty())?))
        }
        _ => None,
    }
}

fn text(value: &Expr) -> Option<String> {
    match value {
        Expr::Literal(value, _) => value.try_as_str().flatten().map(str::to_owned),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{col, lit};

    use super::*;

    #[test]
    fn conditions_are_pushed_as_far_as_they_are_known() {
        let time = col("ts_ns")
            .gt_eq(lit(5_i64))
            .and(lit(9_i64).gt(col("ts_ns")));
        let hosts = col("host").eq(lit("a")).or(lit("b").eq(col("host")));
        let service = col("service").in_list(vec![lit("x"), lit("y")], false);
        let others = [
            col("host").not_eq(lit("c")),
            col("host").eq(lit("a")).or(col("name").eq(lit("n"))),
            col("service").in_list(vec![lit("z")], true),
            col("ts_ns").eq(col("dur_ns")),
            col("name").eq(lit("a::b")),
            col("ts_ns")
                .lt(lit(100_i64))
                .or(col("ts_ns").gt(lit(200_i64))),
        ];
        let all: Vec<_> = [time, hosts, service].into_iter().chain(others).collect();
        for is_spans in [true, false] {
            let wanted = wanted(&all, is_spans);
            assert_eq!((wanted.from_ns, wanted.to_ns), (Some(5), Some(10)));
            assert_eq!(wanted.is_to_of_starts, is_spans);
            assert_eq!(wanted.choice.hosts, ["a", "b"]);
            assert_eq!(wanted.choice.services, ["x", "y"]);
            assert!(wanted.names.is_empty());
        }
        let named = wanted(&[col("name").eq(lit("get"))], true);
        assert_eq!(named.names, ["get"]);
    }
}
