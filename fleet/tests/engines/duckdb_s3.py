import duckdb
import os

files = open("files.txt").read().split()
db = duckdb.connect()
db.sql("INSTALL httpfs; LOAD httpfs")
db.sql(f"""CREATE SECRET (TYPE s3, KEY_ID '{os.environ["AWS_ACCESS_KEY_ID"]}',
    SECRET '{os.environ["AWS_SECRET_ACCESS_KEY"]}', REGION 'us-east-1',
    ENDPOINT '{os.environ["S3_HOST"]}', USE_SSL false, URL_STYLE 'path')""")
db.read_parquet(files).create_view("spans")
for row in db.sql(open("query.sql").read()).fetchall():
    print(*row, sep="\t")
