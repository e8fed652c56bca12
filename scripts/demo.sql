-- demo.sql: what "make demo" runs.  Each block is a title, what to compute over
-- its result so that every row of it is produced and looked at (the "consume"
-- line), and the query.  demo.sh puts them together as
--
--		SELECT <consume> FROM (<query>) q
--
-- and :rows is the size of the table.

-- load: a table of sales, in no particular order
CREATE TABLE sales AS
SELECT i::int4 AS id,
       (random() * 999999)::int4 AS item,
       (random() * 99999)::int4 AS customer,
       (random() * 99)::int2 AS store,
       nullif((random() * 20)::int4, 0) AS promotion,
       date '2020-01-01' + (random() * 1999)::int4 AS day,
       1 + (random() * 9)::int4 AS quantity
FROM generate_series(1, :rows) i;
-- end

-- title: a sum for each of 100 stores
-- consume: count(*), sum(store), sum(sold)
SELECT store, sum(quantity) AS sold
FROM sales GROUP BY store;
-- end

-- title: six aggregates for each of 100,000 customers, some filtered, HAVING
-- consume: count(*), sum(customer), sum(sales), sum(sold), sum(average), sum(promoted), min(first), max(last)
SELECT customer, count(*) AS sales, sum(quantity) AS sold, avg(quantity) AS average,
       count(*) FILTER (WHERE promotion IS NOT NULL) AS promoted,
       min(day) FILTER (WHERE quantity > 5) AS first, max(day) AS last
FROM sales GROUP BY customer HAVING avg(quantity) > 5.5;
-- end

-- title: a sum for each of 1,000,000 items
-- consume: count(*), sum(item), sum(sold)
SELECT item, sum(quantity) AS sold
FROM sales GROUP BY item;
-- end

-- title: two keys, one of them NULL at times
-- consume: count(*), sum(customer), sum(promotion), sum(sold)
SELECT customer, promotion, sum(quantity) AS sold
FROM sales GROUP BY customer, promotion;
-- end

-- title: a sum for each row: no two are alike
-- consume: count(*), sum(id), sum(sold)
SELECT id, sum(quantity) AS sold
FROM sales GROUP BY id;
-- end
