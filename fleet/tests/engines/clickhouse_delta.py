import chdb
import os

query = open("query.sql").read()
os.chdir("/srv/traces")
db = chdb.connect()
db.query("CREATE VIEW spans AS SELECT * FROM deltaLakeLocal('/srv/traces/tables/spans')")
print(db.query(query, "TabSeparated"), end="")
