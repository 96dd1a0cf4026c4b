import subprocess

from pyspark.sql import SparkSession

command = ["ringmark", "store", "files", "/srv/traces", "--table", "spans"]
files = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
local = SparkSession.builder.master("local-cluster[2,1,512]")
spark = local.config("spark.executor.memory", "512m").getOrCreate()
spans = spark.read.option("basePath", "/srv/traces/tables/spans").parquet(*files)
spans.createOrReplaceTempView("spans")
for row in spark.sql(open("query.sql").read()).collect():
    print(*row, sep="\t")
