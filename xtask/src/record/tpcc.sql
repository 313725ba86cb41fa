-- TPC-C in MariaDB alone: tables, load and the five transactions as procedures of the server.
-- Tables, keys, sizes of rows, the mix and the distributions are those of the TPC-C specification,
-- revision 5.11; the two indexes beyond its queries are those that tpcc-mysql makes. A client is one
-- session that calls `client`: no keying and no think time, as in tpcc-mysql.

CREATE TABLE warehouse (
  w_id INT PRIMARY KEY, w_name VARCHAR(10), w_street_1 VARCHAR(20), w_street_2 VARCHAR(20),
  w_city VARCHAR(20), w_state CHAR(2), w_zip CHAR(9), w_tax DECIMAL(4,4), w_ytd DECIMAL(12,2));
CREATE TABLE district (
  d_w_id INT, d_id TINYINT, d_name VARCHAR(10), d_street_1 VARCHAR(20), d_street_2 VARCHAR(20),
  d_city VARCHAR(20), d_state CHAR(2), d_zip CHAR(9), d_tax DECIMAL(4,4), d_ytd DECIMAL(12,2),
  d_next_o_id INT, PRIMARY KEY (d_w_id, d_id));
CREATE TABLE customer (
  c_w_id INT, c_d_id TINYINT, c_id INT, c_first VARCHAR(16), c_middle CHAR(2), c_last VARCHAR(16),
  c_street_1 VARCHAR(20), c_street_2 VARCHAR(20), c_city VARCHAR(20), c_state CHAR(2),
  c_zip CHAR(9), c_phone CHAR(16), c_since DATETIME, c_credit CHAR(2), c_credit_lim DECIMAL(12,2),
  c_discount DECIMAL(4,4), c_balance DECIMAL(12,2), c_ytd_payment DECIMAL(12,2),
  c_payment_cnt INT, c_delivery_cnt INT, c_data VARCHAR(500),
  PRIMARY KEY (c_w_id, c_d_id, c_id), KEY by_name (c_w_id, c_d_id, c_last, c_first));
CREATE TABLE history (
  h_c_id INT, h_c_d_id TINYINT, h_c_w_id INT, h_d_id TINYINT, h_w_id INT, h_date DATETIME,
  h_amount DECIMAL(6,2), h_data VARCHAR(24));
CREATE TABLE new_order (
  no_w_id INT, no_d_id TINYINT, no_o_id INT, PRIMARY KEY (no_w_id, no_d_id, no_o_id));
CREATE TABLE orders (
  o_w_id INT, o_d_id TINYINT, o_id INT, o_c_id INT, o_entry_d DATETIME, o_carrier_id TINYINT,
  o_ol_cnt TINYINT, o_all_local TINYINT,
  PRIMARY KEY (o_w_id, o_d_id, o_id), KEY by_customer (o_w_id, o_d_id, o_c_id, o_id));
CREATE TABLE order_line (
  ol_w_id INT, ol_d_id TINYINT, ol_o_id INT, ol_number TINYINT, ol_i_id INT, ol_supply_w_id INT,
  ol_delivery_d DATETIME, ol_quantity TINYINT, ol_amount DECIMAL(6,2), ol_dist_info CHAR(24),
  PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number), KEY by_item (ol_supply_w_id, ol_i_id));
CREATE TABLE item (
  i_id INT PRIMARY KEY, i_im_id INT, i_name VARCHAR(24), i_price DECIMAL(5,2), i_data VARCHAR(50));
CREATE TABLE stock (
  s_w_id INT, s_i_id INT, s_quantity SMALLINT, s_dist_01 CHAR(24), s_dist_02 CHAR(24),
  s_dist_03 CHAR(24), s_dist_04 CHAR(24), s_dist_05 CHAR(24), s_dist_06 CHAR(24),
  s_dist_07 CHAR(24), s_dist_08 CHAR(24), s_dist_09 CHAR(24), s_dist_10 CHAR(24),
  s_ytd DECIMAL(8,0), s_order_cnt INT, s_remote_cnt INT, s_data VARCHAR(50),
  PRIMARY KEY (s_w_id, s_i_id), KEY by_item (s_i_id));
-- Warehouses that clients use.
CREATE TABLE ready (warehouses INT);
INSERT INTO ready VALUES (0);

DELIMITER //
-- A whole number from `least` to `most`.
CREATE FUNCTION uniform(least INT, most INT) RETURNS INT NO SQL
  RETURN least + FLOOR(RAND() * (most - least + 1))//
-- Clause 2.1.6; C is 123.
CREATE FUNCTION nurand(a INT, least INT, most INT) RETURNS INT NO SQL
  RETURN ((uniform(0, a) | uniform(least, most)) + 123) % (most - least + 1) + least//
-- Clause 4.3.2.3.
CREATE FUNCTION last_name(number INT) RETURNS VARCHAR(16) NO SQL
  RETURN CONCAT(
    ELT(number DIV 100 + 1, 'BAR','OUGHT','ABLE','PRI','PRES','ESE','ANTI','CALLY','ATION','EING'),
    ELT(number DIV 10 % 10 + 1, 'BAR','OUGHT','ABLE','PRI','PRES','ESE','ANTI','CALLY','ATION','EING'),
    ELT(number % 10 + 1, 'BAR','OUGHT','ABLE','PRI','PRES','ESE','ANTI','CALLY','ATION','EING'))//
CREATE FUNCTION letters(least INT, most INT) RETURNS VARCHAR(500) NO SQL
  RETURN REPEAT('x', uniform(least, most))//

CREATE PROCEDURE load_items()
BEGIN
  INSERT INTO item
    SELECT seq, uniform(1, 10000), letters(14, 24), uniform(100, 10000) / 100, letters(26, 50)
    FROM seq_1_to_100000;
  COMMIT;
END//

CREATE PROCEDURE load_stock(w INT)
BEGIN
  DECLARE part INT DEFAULT 0;
  DECLARE s CHAR(24) DEFAULT REPEAT('s', 24);
  WHILE part < 20 DO
    INSERT INTO stock
      SELECT w, seq + part * 5000, uniform(10, 100), s, s, s, s, s, s, s, s, s, s, 0, 0, 0,
        letters(26, 50)
      FROM seq_1_to_5000;
    COMMIT;
    SET part = part + 1;
  END WHILE;
END//

CREATE PROCEDURE load_customers(w INT, d INT)
BEGIN
  INSERT INTO customer
    SELECT w, d, seq, letters(8, 16), 'OE',
      last_name(IF(seq <= 1000, seq - 1, nurand(255, 0, 999))), letters(10, 20), letters(10, 20),
      letters(10, 20), 'XX', '123411111', REPEAT('1', 16), NOW(), IF(RAND() < 0.1, 'BC', 'GC'),
      50000, uniform(0, 5000) / 10000, -10, 10, 1, 0, letters(300, 500)
    FROM seq_1_to_3000;
  INSERT INTO history SELECT seq, d, w, d, w, NOW(), 10, letters(12, 24) FROM seq_1_to_3000;
  COMMIT;
END//

CREATE PROCEDURE load_orders(w INT, d INT)
BEGIN
  -- each customer has one order: 1000003 and 3000 have no common divisor
  INSERT INTO orders
    SELECT w, d, seq, seq * 1000003 % 3000 + 1, NOW(), IF(seq < 2101, uniform(1, 10), NULL),
      uniform(5, 15), 1
    FROM seq_1_to_3000;
  INSERT INTO order_line
    SELECT w, d, o_id, seq, uniform(1, 100000), w, IF(o_id < 2101, o_entry_d, NULL), 5,
      IF(o_id < 2101, 0, uniform(1, 999999) / 100), REPEAT('d', 24)
    FROM orders JOIN seq_1_to_15 ON seq <= o_ol_cnt WHERE o_w_id = w AND o_d_id = d;
  INSERT INTO new_order SELECT w, d, seq FROM seq_2101_to_3000;
  COMMIT;
END//

CREATE PROCEDURE load_warehouse(w INT)
BEGIN
  DECLARE d INT DEFAULT 1;
  INSERT INTO warehouse VALUES (w, letters(6, 10), letters(10, 20), letters(10, 20),
    letters(10, 20), 'XX', '123411111', uniform(0, 2000) / 10000, 300000);
  INSERT INTO district
    SELECT w, seq, letters(6, 10), letters(10, 20), letters(10, 20), letters(10, 20), 'XX',
      '123411111', uniform(0, 2000) / 10000, 30000, 3001
    FROM seq_1_to_10;
  CALL load_stock(w);
  WHILE d <= 10 DO
    CALL load_customers(w, d);
    CALL load_orders(w, d);
    SET d = d + 1;
  END WHILE;
  UPDATE ready SET warehouses = w;
  COMMIT;
END//

-- Clause 2.4: ten items on average, one in a hundred orders is rolled back.
CREATE PROCEDURE make_order(w INT, warehouses INT)
BEGIN
  DECLARE d, c, o, item_count, line, i, supply, quantity INT;
  DECLARE price, tax, discount DECIMAL(12,4);
  DECLARE info CHAR(24);
  DECLARE is_wrong BOOL DEFAULT RAND() < 0.01;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION ROLLBACK;
  SET d = uniform(1, 10), c = nurand(1023, 1, 3000), item_count = uniform(5, 15), line = 1;
  START TRANSACTION;
  SELECT c_discount, w_tax INTO discount, tax FROM warehouse JOIN customer ON c_w_id = w_id
    WHERE w_id = w AND c_d_id = d AND c_id = c;
  SELECT d_next_o_id INTO o FROM district WHERE d_w_id = w AND d_id = d FOR UPDATE;
  UPDATE district SET d_next_o_id = o + 1 WHERE d_w_id = w AND d_id = d;
  INSERT INTO orders VALUES (w, d, o, c, NOW(), NULL, item_count, 1);
  INSERT INTO new_order VALUES (w, d, o);
  WHILE line <= item_count DO
    SET i = nurand(8191, 1, 100000), supply = w, quantity = uniform(1, 10);
    IF RAND() < 0.01 THEN SET supply = uniform(1, warehouses); END IF;
    SELECT i_price INTO price FROM item WHERE i_id = i;
    SELECT s_dist_01 INTO info FROM stock WHERE s_w_id = supply AND s_i_id = i FOR UPDATE;
    UPDATE stock
      SET s_quantity = s_quantity - quantity + IF(s_quantity < quantity + 10, 91, 0),
        s_ytd = s_ytd + quantity, s_order_cnt = s_order_cnt + 1,
        s_remote_cnt = s_remote_cnt + (supply <> w)
      WHERE s_w_id = supply AND s_i_id = i;
    INSERT INTO order_line
      VALUES (w, d, o, line, i, supply, NULL, quantity, LEAST(quantity * price, 9999), info);
    SET line = line + 1;
  END WHILE;
  IF is_wrong THEN ROLLBACK; ELSE COMMIT; END IF;
END//

-- Clause 2.5: 15 % of customers of another warehouse, 60 % of them by their name.
CREATE PROCEDURE pay(w INT, warehouses INT)
BEGIN
  DECLARE d, c, cw, cd INT;
  DECLARE amount DECIMAL(6,2);
  DECLARE EXIT HANDLER FOR SQLEXCEPTION ROLLBACK;
  SET d = uniform(1, 10), cw = w, amount = uniform(100, 500000) / 100, cd = d;
  IF RAND() < 0.15 THEN SET cw = uniform(1, warehouses), cd = uniform(1, 10); END IF;
  START TRANSACTION;
  UPDATE warehouse SET w_ytd = w_ytd + amount WHERE w_id = w;
  UPDATE district SET d_ytd = d_ytd + amount WHERE d_w_id = w AND d_id = d;
  CALL find_customer(cw, cd, c);
  UPDATE customer
    SET c_balance = c_balance - amount, c_ytd_payment = c_ytd_payment + amount,
      c_payment_cnt = c_payment_cnt + 1,
      c_data = IF(c_credit = 'BC', LEFT(CONCAT(c, ' ', cd, ' ', cw, ' ', amount, c_data), 500), c_data)
    WHERE c_w_id = cw AND c_d_id = cd AND c_id = c;
  INSERT INTO history VALUES (c, cd, cw, d, w, NOW(), amount, letters(12, 24));
  COMMIT;
END//

-- Of several of one name, that in their middle.
CREATE PROCEDURE find_customer(w INT, d INT, OUT c INT)
BEGIN
  DECLARE name VARCHAR(16);
  DECLARE middle INT;
  IF RAND() < 0.4 THEN
    SET c = nurand(1023, 1, 3000);
  ELSE
    SET name = last_name(nurand(255, 0, 999));
    SELECT (COUNT(*) - 1) DIV 2 INTO middle FROM customer
      WHERE c_w_id = w AND c_d_id = d AND c_last = name;
    SELECT c_id INTO c FROM customer
      WHERE c_w_id = w AND c_d_id = d AND c_last = name ORDER BY c_first LIMIT middle, 1;
  END IF;
END//

-- Clause 2.6.
CREATE PROCEDURE look_at_order(w INT)
BEGIN
  DECLARE d, c, o, found INT;
  DECLARE balance DECIMAL(12,2);
  DECLARE EXIT HANDLER FOR SQLEXCEPTION ROLLBACK;
  SET d = uniform(1, 10);
  START TRANSACTION;
  CALL find_customer(w, d, c);
  SELECT c_balance INTO balance FROM customer WHERE c_w_id = w AND c_d_id = d AND c_id = c;
  SELECT MAX(o_id) INTO o FROM orders WHERE o_w_id = w AND o_d_id = d AND o_c_id = c;
  SELECT SUM(ol_quantity) INTO found FROM order_line
    WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = o;
  COMMIT;
END//

-- Clause 2.7: the oldest new order of each district.
CREATE PROCEDURE deliver(w INT)
BEGIN
  DECLARE d INT DEFAULT 1;
  DECLARE o, c INT;
  DECLARE total DECIMAL(12,2);
  DECLARE EXIT HANDLER FOR SQLEXCEPTION ROLLBACK;
  START TRANSACTION;
  WHILE d <= 10 DO
    SELECT MIN(no_o_id) INTO o FROM new_order WHERE no_w_id = w AND no_d_id = d FOR UPDATE;
    IF o IS NOT NULL THEN
      DELETE FROM new_order WHERE no_w_id = w AND no_d_id = d AND no_o_id = o;
      SELECT o_c_id INTO c FROM orders WHERE o_w_id = w AND o_d_id = d AND o_id = o FOR UPDATE;
      UPDATE orders SET o_carrier_id = uniform(1, 10)
        WHERE o_w_id = w AND o_d_id = d AND o_id = o;
      UPDATE order_line SET ol_delivery_d = NOW()
        WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = o;
      SELECT SUM(ol_amount) INTO total FROM order_line
        WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = o;
      UPDATE customer SET c_balance = c_balance + total, c_delivery_cnt = c_delivery_cnt + 1
        WHERE c_w_id = w AND c_d_id = d AND c_id = c;
    END IF;
    SET d = d + 1;
  END WHILE;
  COMMIT;
END//

-- Clause 2.8: items of the last twenty orders that run short.
CREATE PROCEDURE look_at_stock(w INT)
BEGIN
  DECLARE d, o, found INT;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION ROLLBACK;
  SET d = uniform(1, 10);
  START TRANSACTION;
  SELECT d_next_o_id INTO o FROM district WHERE d_w_id = w AND d_id = d;
  SELECT COUNT(DISTINCT s_i_id) INTO found FROM order_line
    JOIN stock ON s_w_id = w AND s_i_id = ol_i_id
    WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id BETWEEN o - 20 AND o - 1
      AND s_quantity < uniform(10, 20);
  COMMIT;
END//

-- So many transactions of the mix of clause 5.2.3, in warehouses drawn at random.
CREATE PROCEDURE client(transactions INT)
BEGIN
  DECLARE w, known INT;
  DECLARE draw DOUBLE;
  WHILE transactions > 0 DO
    IF known IS NULL OR transactions % 50 = 0 THEN SELECT warehouses INTO known FROM ready; END IF;
    SET w = uniform(1, known), draw = RAND() * 100, transactions = transactions - 1;
    CASE
      WHEN draw < 45 THEN CALL make_order(w, known);
      WHEN draw < 88 THEN CALL pay(w, known);
      WHEN draw < 92 THEN CALL look_at_order(w);
      WHEN draw < 96 THEN CALL deliver(w);
      ELSE CALL look_at_stock(w);
    END CASE;
  END WHILE;
END//

-- Orders that clients have made.
CREATE FUNCTION orders_made() RETURNS INT READS SQL DATA
  RETURN (SELECT SUM(d_next_o_id - 3001) FROM district)//

-- Warehouses `first` to `last`, each when so many more orders were made.
CREATE PROCEDURE grow(first INT, last INT, orders INT)
BEGIN
  DECLARE due INT DEFAULT orders_made();
  WHILE first <= last DO
    WHILE orders_made() < due DO DO SLEEP(0.1); END WHILE;
    CALL load_warehouse(first);
    SET first = first + 1, due = due + orders;
  END WHILE;
END//
DELIMITER ;
