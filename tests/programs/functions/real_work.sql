-- Work for SQLite's shell, as much as the parameter :n says; what it prints depends on nothing else.
-- Few reals are printed, and with few digits: Valgrind counts with fewer bits.
CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT NOT NULL, size INT, weight REAL, note BLOB);
CREATE TABLE part(item INT REFERENCES item ON DELETE CASCADE, number INT, text TEXT, PRIMARY KEY(item, number))
    WITHOUT ROWID;
CREATE TABLE log(what TEXT, id INT, size INT);
CREATE INDEX by_size ON item(size, name);
CREATE INDEX by_word ON part(text COLLATE NOCASE) WHERE number % 2 = 0;
CREATE TRIGGER grows AFTER UPDATE OF size ON item WHEN new.size > old.size BEGIN
    INSERT INTO log VALUES('grows', new.id, new.size - old.size);
END;
CREATE VIEW heavy AS SELECT id, name, CAST(100 * weight / size AS INT) AS density FROM item WHERE size > 0;
PRAGMA foreign_keys = ON;

BEGIN;
WITH RECURSIVE numbers(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < 200 * :n)
INSERT INTO item SELECT i, printf('item-%05d', i * 7919 % 100003), i * i % 977, i * 0.25, zeroblob(i % 50)
    FROM numbers;
WITH RECURSIVE numbers(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM numbers WHERE i < 4)
INSERT INTO part SELECT id, i, substr(hex(id * 31 + i) || name, 1, 9 + i) FROM item, numbers;
COMMIT;

.mode csv
SELECT count(*), sum(size), max(weight), group_concat(DISTINCT size % 7) FROM item;
SELECT name, count(*), max(text), total(number) FROM item JOIN part ON item.id = part.item
    WHERE size BETWEEN 100 AND 200 GROUP BY name HAVING count(*) > 2 ORDER BY size DESC, name LIMIT 20;
SELECT id, rank() OVER (PARTITION BY size % 5 ORDER BY weight DESC), lag(size, 2, -1) OVER (ORDER BY id)
    FROM item ORDER BY 2, id LIMIT 15;
.mode json
SELECT json_object('id', id, 'parts', (SELECT json_group_array(text) FROM part WHERE part.item = item.id)) AS whole
    FROM item WHERE name LIKE '%7%3%' ORDER BY id LIMIT 5;
SELECT value, key FROM json_each('[1, {"a": [true, null]}, "x\u00e9", 2.5e3]');

UPDATE item SET size = size + id % 11, note = CAST(name AS BLOB) WHERE id % 3 = 0;
SAVEPOINT before;
DELETE FROM item WHERE size % 2 = 1;
SELECT count(*) AS left_over FROM part;
ROLLBACK TO before;
RELEASE before;
DELETE FROM item WHERE size % 13 = 1;
INSERT INTO item(id, name, size) SELECT id, 'again', 1 FROM item WHERE id % 10 = 0
    ON CONFLICT(id) DO UPDATE SET name = excluded.name || '-' || item.name, size = item.size * 2;
REPLACE INTO part SELECT item, number, upper(text) FROM part WHERE number = 1;

.mode box
SELECT what, count(*), sum(size) FROM log GROUP BY what;
SELECT * FROM heavy WHERE density NOT IN (SELECT weight FROM item) ORDER BY density DESC LIMIT 10;
SELECT text FROM part WHERE number % 2 = 0 AND text LIKE '3%' COLLATE NOCASE
    EXCEPT SELECT text FROM part WHERE item % 2 = 0 ORDER BY 1 LIMIT 10;
WITH RECURSIVE queens(row, board) AS (
    SELECT 0, '' UNION ALL
    SELECT row + 1, board || c.value FROM queens, json_each('[0,1,2,3,4]') AS c
    WHERE row < 5 AND instr(board, c.value) = 0)
SELECT board FROM queens WHERE row = 5 ORDER BY board LIMIT 5;
SELECT strftime('%Y-%m-%d %H:%M', 86400 * value, 'unixepoch', '+1 month') FROM json_each('[0,59,365,11016]');
EXPLAIN QUERY PLAN SELECT * FROM item JOIN part ON item.id = part.item WHERE size = 3 ORDER BY name;
ALTER TABLE item ADD COLUMN extra DEFAULT 'none';
ANALYZE;
VACUUM;
PRAGMA integrity_check;
.mode quote
SELECT id, name, size, note, extra FROM item WHERE extra = 'none' ORDER BY length(name), id DESC LIMIT 10;
.schema
.dump log
