import duckdb

db = duckdb.connect()
db.sql("INSTALL delta; LOAD delta")
db.sql("CREATE VIEW spans AS FROM delta_scan('/srv/traces/tables/spans')")
for row in db.sql(open("query.sql").read()).fetchall():
    print(*row, sep="\t")
