SELECT $__timeInterval(fromUnixTimestamp64Nano(ts_ns)) AS time, quantileExact(0.99)(dur_ns) AS p99_ns
FROM deltaLakeLocal('/var/lib/clickhouse/user_files/traces/tables/spans')
WHERE $__timeFilter(fromUnixTimestamp64Nano(ts_ns)) AND service = 'shop'
GROUP BY time ORDER BY time
