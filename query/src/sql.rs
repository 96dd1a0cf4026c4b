//! A question: planned, run, and its answer printed.

use std::io::ErrorKind;
use std::panic::resume_unwind;
use std::sync::{Arc, PoisonError};
use std::thread::available_parallelism;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SQLOptions, SessionConfig, SessionContext};
use futures_util::StreamExt;
use ringmark_console::answer::{Answer, Cell};
use ringmark_console::extension::Question;
use ringmark_fleet::{Stored, TABLES};

use crate::quantiles;
use crate::rows::{Damage, Rows, TABLES_URL};
use crate::tables::Tables;

/// Rows that operators pass on together.
const BATCH_ROWS: usize = 8192;
/// Bytes of a question, at most.
const SQL_BYTES: usize = 64 << 10;
/// Bytes of stack of the thread that plans, and of those that run: a question may be deep.
const STACK_BYTES: (usize, usize) = (512 << 20, 32 << 20);
/// Lines about damage that are printed.
const DAMAGE: usize = 10;

/// Why there is no answer.
pub(crate) struct Failed {
    pub(crate) exit: u8,
    pub(crate) text: String,
}

impl Failed {
    fn usage(text: String) -> Self {
        Self { exit: 2, text }
    }

    fn unreadable(text: String) -> Self {
        Self { exit: 3, text }
    }
}

/// Answers a question; returns the exit code.
pub(crate) fn run(question: &Question) -> Result<u8, Failed> {
    if question.sql.len() > SQL_BYTES {
        let bytes = question.sql.len();
        let text = format!("found a question of {bytes} bytes, expected {SQL_BYTES} at most");
        return Err(Failed::usage(text));
    }
    let done = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES.0);
        let running = thread.spawn_scoped(scope, || run_here(question));
        running.map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    });
    done.map_err(|error| Failed::unreadable(format!("a thread: {error}")))?
}

fn run_here(question: &Question) -> Result<u8, Failed> {
    let stored = Stored::open(&question.store, question.tables.as_deref());
    let stored = Arc::new(stored.map_err(|error| Failed::unreadable(format!("{error:#}")))?);
    let threads = available_parallelism().map_or(1, |threads| threads.get());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_stack_size(STACK_BYTES.1)
        .build();
    let runtime = runtime.map_err(|error| Failed::unreadable(error.to_string()))?;
    let damage = Damage::default();
    let asked = async {
        let context = context(&stored, question, threads, &damage);
        let context = context.map_err(|error| Failed::unreadable(format!("{error:#}")))?;
        answer(&context, question).await
    };
    runtime.block_on(asked)?;
    let damage = damage.lock().unwrap_or_else(PoisonError::into_inner);
    for line in damage.iter().take(DAMAGE) {
        eprintln!("ringmark-query: {line}");
    }
    if damage.len() > DAMAGE {
        eprintln!("ringmark-query: and {} more", damage.len() - DAMAGE);
    }
    Ok(u8::from(!damage.is_empty()))
}

fn context(
    stored: &Arc<Stored>,
    question: &Question,
    threads: usize,
    damage: &Damage,
) -> anyhow::Result<SessionContext> {
    let mut config = SessionConfig::new()
        .with_target_partitions(threads)
        .with_batch_size(BATCH_ROWS)
        .with_information_schema(true);
    config.options_mut().execution.parquet.pushdown_filters = true;
    let memory = usize::try_from(question.memory).unwrap_or(usize::MAX);
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(FairSpillPool::new(memory)))
        .build_arc()?;
    if let Some(source) = stored.tables() {
        let url = ObjectStoreUrl::parse(TABLES_URL)?;
        let tables = Arc::new(Tables(source.clone()));
        let _ = runtime.register_object_store(url.as_ref(), tables);
    }
    let context = SessionContext::new_with_config_rt(config, runtime);
    for table in TABLES {
        let rows = Rows::new(stored.clone(), table, damage.clone());
        let _ = context.register_table(table, Arc::new(rows))?;
    }
    for function in quantiles::functions() {
        context.register_udaf(function);
    }
    Ok(context)
}

async fn answer(context: &SessionContext, question: &Question) -> Result<(), Failed> {
    let reads = SQLOptions::new()
        .with_allow_ddl(false)
        .with_allow_dml(false)
        .with_allow_statements(false);
    let asked = context.sql_with_options(&question.sql, reads).await;
    let asked = asked.map_err(|error| Failed::usage(explained(&error)))?;
    let columns = columns(asked.schema().as_arrow());
    let rows = asked.execute_stream().await;
    let mut rows = rows.map_err(|error| Failed::usage(explained(&error)))?;
    let mut answer = question.answer(columns);
    while let Some(batch) = rows.next().await {
        let batch = batch.map_err(|error| Failed::unreadable(explained(&error)))?;
        match put(&batch, &mut answer) {
            Ok(()) => {}
            Err(error) if is_closed(&error) => return Ok(()),
            Err(error) => return Err(Failed::unreadable(format!("{error:#}"))),
        }
    }
    match answer.finish() {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failed::unreadable(format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

fn is_closed(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<std::io::Error>();
    error.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

/// Names of columns, and whether they have numbers.
fn columns(schema: &Schema) -> Vec<(String, bool)> {
    let columns = schema.fields().iter();
    let columns = columns.map(|field| (field.name().clone(), field.data_type().is_numeric()));
    columns.collect()
}

fn put(batch: &RecordBatch, answer: &mut Answer) -> anyhow::Result<()> {
    let options = FormatOptions::default().with_display_error(true);
    let columns = batch.columns().iter();
    let formatters = columns
        .clone()
        .map(|column| ArrayFormatter::try_new(column, &options));
    let formatters = formatters.collect::<Result<Vec<_>, _>>()?;
    let nulls: Vec<_> = columns
        .clone()
        .map(|column| column.logical_nulls())
        .collect();
    let mut texts = vec![String::new(); formatters.len()];
    for row in 0..batch.num_rows() {
        for (formatter, text) in formatters.iter().zip(&mut texts) {
            text.clear();
            formatter.value(row).write(text)?;
        }
        let cells = columns
            .clone()
            .zip(&nulls)
            .zip(&texts)
            .map(|((column, nulls), text)| {
                let is_plain =
                    column.data_type().is_numeric() || *column.data_type() == DataType::Boolean;
                match () {
                    () if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) => Cell::Null,
                    // JSON has no such numbers.
                    () if is_plain && ["NaN", "inf", "-inf"].contains(&&**text) => Cell::Null,
                    () if is_plain => Cell::Plain(text),
                    () => Cell::Text(text),
                }
            });
        answer.row(&cells.collect::<Vec<_>>())?;
    }
    Ok(())
}

/// What is wrong, in one line, with what is expected where DataFusion does not say it.
fn explained(error: &DataFusionError) -> String {
    let text = error.strip_backtrace().replace(['\n', '\r'], " ");
    match error.find_root() {
        DataFusionError::ResourcesExhausted(_) => format!("{text}; --memory gives more"),
        DataFusionError::Plan(plan) if plan.contains("not found") && plan.contains("table") => {
            format!("{text}; expected spans or events")
        }
        DataFusionError::Plan(plan) if plan.contains("not supported") => {
            format!("{text}; expected a question such as SELECT, which changes nothing")
        }
        _ => text,
    }
}
