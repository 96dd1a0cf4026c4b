//! Prints how many bytes a row takes in each column of a Parquet file: `columns FILE`.

use std::fs::File;

use parquet::file::reader::{FileReader, SerializedFileReader};

fn main() {
    let path = std::env::args().nth(1).expect("usage: columns FILE");
    let reader = SerializedFileReader::new(File::open(path).expect("FILE")).expect("Parquet");
    let about = reader.metadata();
    let rows = about.file_metadata().num_rows() as f64;
    let names = about.file_metadata().schema_descr().columns();
    let mut sum = 0;
    for (place, column) in names.iter().enumerate() {
        let groups = about.row_groups().iter();
        let bytes: i64 = groups
            .map(|group| group.column(place).compressed_size())
            .sum();
        sum += bytes;
        println!("{:<12} {:>7.3}", column.name(), bytes as f64 / rows);
    }
    println!(
        "{:<12} {:>7.3} bytes a row, {rows} rows, {} row groups",
        "all",
        sum as f64 / rows,
        about.num_row_groups()
    );
}
