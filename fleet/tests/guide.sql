SELECT name, count(*) AS calls, sum(dur_ns) / 1e6 AS ms, quantile_disc(dur_ns, 0.99) AS p99_ns
FROM delta_scan('/srv/traces/tables/spans')
WHERE date = '2026-01-31' AND host = 'web-1'
GROUP BY name ORDER BY ms DESC LIMIT 20;
