SELECT name, count(*) AS calls, sum(dur_ns) / 1e6 AS ms, p99(dur_ns) AS p99_ns
FROM spans
WHERE host = 'web-1' AND ts_ns >= to_unixtime('2026-01-31T12:00:00Z') * 1000000000
GROUP BY name ORDER BY ms DESC LIMIT 20
