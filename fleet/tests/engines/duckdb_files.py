import duckdb
import subprocess

command = ["ringmark", "store", "files", "/srv/traces", "--table", "spans"]
files = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
db = duckdb.connect()
db.read_parquet(files).create_view("spans")
for row in db.sql(open("query.sql").read()).fetchall():
    print(*row, sep="\t")
