"""Which queries does Nexmark have that are more than filters?

In Spark's dialect windows are numbers of whole lengths since 1970. In Flink's they are its table functions,
which answer when a watermark has passed a window. A window is shown by its begin, in milliseconds. Ties are
broken by the time. But not in Flink's q9: Flink 2.3 plans a first row by two columns as if no row ever
went, and its answer would be wrong. By the price alone it keeps the bid that came first, which is the same.
"""

from __future__ import annotations

from bench.sql.stream import Query

__all__ = ["QUERIES"]

_TUMBLE = "TABLE(TUMBLE(TABLE {}, DESCRIPTOR(date_time), INTERVAL '10' SECOND))"
_HOP = "TABLE(HOP(TABLE bid, DESCRIPTOR(date_time), INTERVAL '2' SECOND, INTERVAL '10' SECOND))"
_SESSION = "TABLE(SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(date_time), INTERVAL '10' SECOND))"
_TEN = "unix_millis({}) DIV 10000"

_WINNING = """
    SELECT id, item_name, seller, category, expires, bidder, price, bid_time FROM (
        SELECT a.id, a.item_name, a.seller, a.category, a.expires, b.bidder, b.price, b.date_time AS bid_time,
               ROW_NUMBER() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time) AS place
        FROM auction AS a JOIN bid AS b ON a.id = b.auction
        WHERE b.date_time BETWEEN a.date_time AND a.expires) AS w
    WHERE place <= 1"""

_STATISTICS = """COUNT(*) AS total_bids,
       COUNT(*) FILTER (WHERE price < 10000) AS rank1_bids,
       COUNT(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
       COUNT(*) FILTER (WHERE price >= 1000000) AS rank3_bids"""
_DISTINCT = """COUNT(DISTINCT {0}) AS total_{0}s,
       COUNT(DISTINCT {0}) FILTER (WHERE price < 10000) AS rank1_{0}s,
       COUNT(DISTINCT {0}) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_{0}s,
       COUNT(DISTINCT {0}) FILTER (WHERE price >= 1000000) AS rank3_{0}s"""
_ALL_DISTINCT = ",\n       ".join(_DISTINCT.format(name) for name in ("bidder", "auction"))

QUERIES = (
    Query(
        "q3",
        "persons of three states who sell in category 10",
        ("auction", "person"),
        """
        SELECT p.name, p.city, p.state, a.id FROM auction AS a JOIN person AS p ON a.seller = p.id
        WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')""",
    ),
    Query(
        "q4",
        "the mean closing price of each category",
        ("auction", "bid"),
        """
        SELECT category, AVG(CAST(final AS DOUBLE)) AS mean_price FROM (
            SELECT a.id, a.category, MAX(b.price) AS final FROM auction AS a JOIN bid AS b ON a.id = b.auction
            WHERE b.date_time BETWEEN a.date_time AND a.expires GROUP BY a.id, a.category) AS closed
        GROUP BY category""",
    ),
    Query(
        "q5",
        "the auctions with most bids in each 10 s, every 2 s",
        ("bid",),
        """
        WITH slides AS (
            SELECT auction, unix_millis(date_time) DIV 2000 AS slide, COUNT(*) AS n
            FROM bid GROUP BY auction, unix_millis(date_time) DIV 2000),
        counts AS (
            SELECT auction, slide - back AS starts, SUM(n) AS num FROM slides
            CROSS JOIN (VALUES (0), (1), (2), (3), (4)) AS b (back) GROUP BY auction, slide - back)
        SELECT c.auction, c.num, c.starts * 2000 AS starts_at FROM counts AS c
        JOIN (SELECT starts, MAX(num) AS most FROM counts GROUP BY starts) AS m
            ON c.starts = m.starts AND c.num = m.most""",
        f"""
        SELECT a.auction, a.num, a.window_start FROM (
            SELECT auction, COUNT(*) AS num, window_start, window_end FROM {_HOP}
            GROUP BY auction, window_start, window_end) AS a
        JOIN (SELECT MAX(num) AS most, window_start, window_end FROM (
                SELECT auction, COUNT(*) AS num, window_start, window_end FROM {_HOP}
                GROUP BY auction, window_start, window_end) AS c GROUP BY window_start, window_end) AS m
            ON a.window_start = m.window_start AND a.window_end = m.window_end AND a.num = m.most""",
    ),
    Query(
        "q6",
        "the mean price of the last ten auctions that each seller closed",
        ("auction", "bid"),
        f"""
        SELECT seller, id, AVG(CAST(price AS DOUBLE)) OVER (
            PARTITION BY seller ORDER BY bid_time, id ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) AS mean_price
        FROM ({_WINNING}) AS winning""",
        refused="OVER takes rows that only come, in the order of a time attribute; a winning bid may go",
    ),
    Query(
        "q7",
        "the highest bids of each 10 s",
        ("bid",),
        f"""
        SELECT b.auction, b.price, b.bidder, b.date_time FROM bid AS b
        JOIN (SELECT {_TEN.format("date_time")} AS tens, MAX(price) AS highest FROM bid
              GROUP BY {_TEN.format("date_time")}) AS m
            ON b.price = m.highest AND {_TEN.format("b.date_time")} = m.tens""",
        f"""
        SELECT b.auction, b.price, b.bidder, b.date_time FROM bid AS b
        JOIN (SELECT MAX(price) AS highest, window_start, window_end FROM {_TUMBLE.format("bid")}
              GROUP BY window_start, window_end) AS m
            ON b.price = m.highest AND b.date_time >= m.window_start AND b.date_time < m.window_end""",
    ),
    Query(
        "q8",
        "persons who sell within the 10 s in which they came",
        ("auction", "person"),
        f"""
        SELECT p.id, p.name, p.tens * 10000 AS starts_at FROM (
            SELECT id, name, {_TEN.format("date_time")} AS tens FROM person
            GROUP BY id, name, {_TEN.format("date_time")}) AS p
        JOIN (SELECT seller, {_TEN.format("date_time")} AS tens FROM auction
              GROUP BY seller, {_TEN.format("date_time")}) AS a ON p.id = a.seller AND p.tens = a.tens""",
        f"""
        SELECT p.id, p.name, p.window_start FROM (
            SELECT id, name, window_start, window_end FROM {_TUMBLE.format("person")}
            GROUP BY id, name, window_start, window_end) AS p
        JOIN (SELECT seller, window_start, window_end FROM {_TUMBLE.format("auction")}
              GROUP BY seller, window_start, window_end) AS a
            ON p.id = a.seller AND p.window_start = a.window_start AND p.window_end = a.window_end""",
    ),
    Query(
        "q9",
        "the winning bid of each auction",
        ("auction", "bid"),
        _WINNING,
        _WINNING.replace("b.price DESC, b.date_time)", "b.price DESC)"),
    ),
    Query(
        "q11",
        "the bids of each session of a bidder, which ends after 10 s without",
        ("bid",),
        """
        SELECT bidder, COUNT(*) AS bids, MIN(ms) AS starts_at FROM (
            SELECT bidder, ms, SUM(is_first) OVER (PARTITION BY bidder ORDER BY ms) AS session FROM (
                SELECT bidder, ms, CASE WHEN ms - LAG(ms) OVER (PARTITION BY bidder ORDER BY ms) <= 10000
                                        THEN 0 ELSE 1 END AS is_first
                FROM (SELECT bidder, unix_millis(date_time) AS ms FROM bid) AS b) AS marked) AS numbered
        GROUP BY bidder, session""",
        f"""
        SELECT bidder, COUNT(*) AS bids, window_start FROM {_SESSION}
        GROUP BY bidder, window_start, window_end""",
    ),
    Query(
        "q12",
        "the bids of each bidder in each 10 s (of the time of the event)",
        ("bid",),
        f"""
        SELECT bidder, COUNT(*) AS bids, {_TEN.format("date_time")} * 10000 AS starts_at FROM bid
        GROUP BY bidder, {_TEN.format("date_time")}""",
        f"""
        SELECT bidder, COUNT(*) AS bids, window_start FROM {_TUMBLE.format("bid")}
        GROUP BY bidder, window_start, window_end""",
    ),
    Query(
        "q13",
        "bids with what a table says of their auction",
        ("bid", "side_input"),
        """
        SELECT b.auction, b.bidder, b.price, b.date_time, s.side_value
        FROM bid AS b JOIN side_input AS s ON MOD(b.auction, 10000) = s.side_key""",
    ),
    Query(
        "q15",
        "bids, bidders and auctions of each day, by three ranks",
        ("bid",),
        f"""
        SELECT CAST(date_time AS DATE) AS of_day, {_STATISTICS},
       {_ALL_DISTINCT}
        FROM bid GROUP BY CAST(date_time AS DATE)""",
    ),
    Query(
        "q16",
        "the same of each channel and day",
        ("bid",),
        f"""
        SELECT channel, CAST(date_time AS DATE) AS of_day, MAX(date_time) AS newest, {_STATISTICS},
       {_ALL_DISTINCT}
        FROM bid GROUP BY channel, CAST(date_time AS DATE)""",
    ),
    Query(
        "q17",
        "bids and prices of each auction and day",
        ("bid",),
        f"""
        SELECT auction, CAST(date_time AS DATE) AS of_day, {_STATISTICS},
               MIN(price) AS min_price, MAX(price) AS max_price, AVG(CAST(price AS DOUBLE)) AS mean_price,
               SUM(price) AS sum_price
        FROM bid GROUP BY auction, CAST(date_time AS DATE)""",
    ),
    Query(
        "q18",
        "the last bid of each bidder for each auction",
        ("bid",),
        """
        SELECT auction, bidder, price, channel, date_time FROM (
            SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC) AS place
            FROM bid) AS b WHERE place <= 1""",
    ),
    Query(
        "q19",
        "the ten highest bids of each auction, with their places",
        ("bid",),
        """
        SELECT auction, bidder, price, date_time, place FROM (
            SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC, date_time) AS place
            FROM bid) AS b WHERE place <= 10""",
    ),
    Query(
        "q20",
        "bids with their auction, of category 10",
        ("auction", "bid"),
        """
        SELECT b.auction, b.bidder, b.price, b.channel, b.date_time AS bid_time, a.item_name, a.initial_bid,
               a.reserve, a.date_time, a.expires, a.seller
        FROM bid AS b JOIN auction AS a ON b.auction = a.id WHERE a.category = 10""",
    ),
)
