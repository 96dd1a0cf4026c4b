import polars

spans = polars.scan_delta("/srv/traces/tables/spans")
rows = polars.SQLContext(spans=spans).execute(open("query.sql").read()).collect()
for row in rows.iter_rows():
    print(*row, sep="\t")
