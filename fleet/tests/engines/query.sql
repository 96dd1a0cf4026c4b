SELECT name, max(n) AS calls, sum(dur_ns) AS sum_ns, min(dur_ns) AS min_ns, max(dur_ns) AS max_ns,
       min(CASE WHEN 100 * place >= 99 * n THEN dur_ns END) AS p99_ns
FROM (SELECT name, dur_ns, count(*) OVER (PARTITION BY name) AS n,
             row_number() OVER (PARTITION BY name ORDER BY dur_ns) AS place
      FROM spans WHERE dur_ns IS NOT NULL) AS ranked
GROUP BY name ORDER BY sum_ns DESC, name LIMIT 20
