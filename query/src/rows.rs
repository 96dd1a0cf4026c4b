//! A table for DataFusion: the Parquet files that its log names, and the rows of segments that no run of `compact` has read.

use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchema, DataFusionError, Result};
use datafusion::datasource::TableType;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{
    FileGroup, FileGroupPartitioner, FileScanConfigBuilder, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::union::UnionExec;
use ringmark_fleet::{AddedFile, Stored, Wanted};

use crate::wanted::wanted;

/// Where DataFusion finds the files of tables. Nothing else is there.
pub(crate) const TABLES_URL: &str = "ringmark://tables";
/// Batches that wait for what takes them.
const BATCHES: usize = 2;

/// Bytes of files that are worth a part of their own.
const PART_BYTES: usize = 1 << 20;

/// Damage that was found while rows were read.
pub(crate) type Damage = Arc<Mutex<Vec<String>>>;

/// A table.
#[derive(Debug)]
pub(crate) struct Rows {
    stored: Arc<Stored>,
    table: &'static str,
    schema: SchemaRef,
    damage: Damage,
}

impl Rows {
    pub(crate) fn new(stored: Arc<Stored>, table: &'static str, damage: Damage) -> Self {
        Self {
            stored,
            table,
            schema: Stored::schema(),
            damage,
        }
    }

    /// The files that may have wanted rows.
    fn files(
        &self,
        state: &dyn Session,
        wanted: &Wanted,
        (projection, conditions): (Option<&Vec<usize>>, &[Expr]),
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let files = self.stored.files(self.table).iter();
        let files = files.filter(|file| may_have(file, wanted)).map(|file| {
            let path = format!("tables/{}/{}", self.table, file.path);
            PartitionedFile::new(path, file.bytes)
        });
        let files: Vec<_> = files.collect();
        if files.is_empty() {
            return Ok(None);
        }
        let mut source = ParquetSource::new(self.schema.clone())
            .with_table_parquet_options(state.default_table_options().parquet);
        if let Some(all) = conjunction(conditions.iter().cloned()) {
            let schema = DFSchema::try_from(self.schema.clone())?;
            source = source.with_predicate(state.create_physical_expr(all, &schema)?);
        }
        let groups = in_parts(files, state.config().target_partitions());
        let url = ObjectStoreUrl::parse(TABLES_URL)?;
        let config = FileScanConfigBuilder::new(url, Arc::new(source))
            .with_file_groups(groups)
            .with_projection_indices(projection.cloned())?
            .build();
        Ok(Some(DataSourceExec::from_data_source(config)))
    }

    /// The rows of segments, in parts that are read at the same time.
    fn segments(
        &self,
        state: &dyn Session,
        wanted: Wanted,
        projection: Option<&Vec<usize>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let parts = match self.stored.is_near() && wanted.choice.hosts.len() != 1 {
            true => state.config().target_partitions() as u32,
            false => 1,
        };
        let columns = match projection {
            Some(columns) => columns.clone(),
            None => (0..self.schema.fields().len()).collect(),
        };
        let schema = Arc::new(self.schema.project(&columns)?);
        let part = |part| {
            let mut wanted = wanted.clone();
            wanted.choice.share = (parts > 1).then_some((part, parts));
            Arc::new(Part {
                stored: self.stored.clone(),
                table: self.table,
                wanted,
                columns: columns.clone(),
                schema: schema.clone(),
                damage: self.damage.clone(),
            }) as Arc<dyn PartitionStream>
        };
        let parts = (0..parts).map(part).collect();
        let plan = StreamingTableExec::try_new(schema.clone(), parts, None, [], false, None)?;
        Ok(Arc::new(plan))
    }
}

/// As many parts of about the same size: files, and row groups of files.
fn in_parts(files: Vec<PartitionedFile>, parts: usize) -> Vec<FileGroup> {
    let whole = FileGroup::new(files);
    let partitioner = FileGroupPartitioner::new()
        .with_target_partitions(parts)
        .with_repartition_file_min_size(PART_BYTES * parts);
    let groups = partitioner.repartition_file_groups(std::slice::from_ref(&whole));
    groups.unwrap_or_else(|| whole.split_files(parts))
}

/// Whether a file may have a row that began in the wanted time.
fn may_have(file: &AddedFile, wanted: &Wanted) -> bool {
    let bound = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
    let is_within = |(first, last): (i64, i64)| {
        wanted.from_ns.is_none_or(|from| last >= bound(from))
            && wanted.to_ns.is_none_or(|to| first < bound(to))
    };
    let is_any = wanted.from_ns.is_none() && wanted.to_ns.is_none();
    is_any || file.times.is_some_and(is_within)
}

#[async_trait::async_trait]
impl TableProvider for Rows {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    /// All conditions are given to [`Self::scan`], and checked again in its rows.
    fn supports_filters_pushdown(
        &self,
        conditions: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; conditions.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        conditions: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut wanted = wanted(conditions, self.table == ringmark_fleet::TABLES[0]);
        let files = self.files(state, &wanted, (projection, conditions))?;
        let lost = self.schema.index_of("lost_before")?;
        // Losses are counted before the next row, whichever it is.
        if projection.is_none_or(|columns| columns.contains(&lost)) {
            wanted.names.clear();
        }
        let segments = self.segments(state, wanted, projection)?;
        match files {
            Some(files) => UnionExec::try_new(vec![files, segments]),
            None => Ok(segments),
        }
    }
}

/// Rows of segments that are read one after the other.
#[derive(Debug)]
struct Part {
    stored: Arc<Stored>,
    table: &'static str,
    wanted: Wanted,
    columns: Vec<usize>,
    schema: SchemaRef,
    damage: Damage,
}

impl PartitionStream for Part {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut stream = RecordBatchReceiverStreamBuilder::new(self.schema.clone(), BATCHES);
        let to = stream.tx();
        let (stored, table) = (self.stored.clone(), self.table);
        let (wanted, columns) = (self.wanted.clone(), self.columns.clone());
        let damage = self.damage.clone();
        stream.spawn_blocking(move || {
            let mut is_enough = false;
            let mut ascending = columns.clone();
            ascending.sort_unstable();
            let place = |column| ascending.binary_search(column).unwrap_or_default();
            let order: Vec<_> = columns.iter().map(place).collect();
            let read = stored.each_batch((table, &ascending), &wanted, |batch: RecordBatch| {
                let batch = batch.project(&order)?;
                is_enough = batch.num_rows() > 0 && to.blocking_send(Ok(batch)).is_err();
                anyhow::ensure!(!is_enough, "no reader takes more rows");
                Ok(())
            });
            match read {
                Ok(found) => {
                    let mut all = damage.lock().unwrap_or_else(PoisonError::into_inner);
                    all.extend(found.damage);
                    Ok(())
                }
                Err(_) if is_enough => Ok(()),
                Err(error) => Err(DataFusionError::External(error.into())),
            }
        });
        stream.build()
    }
}
