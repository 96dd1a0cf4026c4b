import chdb
import os
import subprocess

command = ["ringmark", "store", "files", "/srv/traces", "--table", "spans"]
files = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
parts = [f"SELECT * FROM file('{file}', Parquet)" for file in files]
query = open("query.sql").read()
os.chdir("/srv/traces")
db = chdb.connect()
db.query("CREATE VIEW spans AS " + " UNION ALL ".join(parts))
print(db.query(query, "TabSeparated"), end="")
